use super::*;

#[test]
fn what_is_no_machine_is_said() {
    for (memory, wanted) in [
        ("cray", "`cray` is no file, nor a machine that is shipped (xeon, salsa, lace)"),
        ("lace:many", "`many` is no number of processors"),
        ("lace:2000", "1 to 1088 processors, not 2004"),
    ] {
        let error = format!("{:#}", Simulate::new(memory).unwrap_err());
        assert!(error.contains(wanted), "{error}");
    }
    let machine = Simulate::new("lace:1000").unwrap();
    assert_eq!(machine.machine().processors, 1008);
    assert_eq!(machine.workers().unwrap().last(), Some(&1008));
    let error = fits(machine.machine(), 1009).unwrap_err().to_string();
    assert!(error.contains("1009 workers on `lace`, which has 1008 processors"), "{error}");
}
