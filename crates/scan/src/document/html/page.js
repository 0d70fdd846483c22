"use strict";
(() => {
  // The entries: each directory before what is in it, siblings by size.
  const data = JSON.parse(document.getElementById("data").textContent);
  const { names, parents, kinds, disk, apparent, entries, left, marks, scan } = data;
  const size = names.length;
  const REST = -1;
  const MEASURES = ["disk", "apparent", "entries"];
  const KINDS = { d: "directory", f: "file", l: "symbolic link", o: "socket, pipe or device" };
  const by = (id) => document.getElementById(id);

  const first = new Int32Array(size).fill(-1);
  const next = new Int32Array(size).fill(-1);
  for (let at = size - 1; at > 0; at--) {
    next[at] = first[parents[at]];
    first[parents[at]] = at;
  }
  const state = { node: 0, view: "treemap", measure: scan.by, query: "", chosen: 0, rows: 200 };

  const isDirectory = (at) => at >= 0 && kinds[at] === "d";
  const value = (at) =>
    state.measure === "disk" ? disk[at] : state.measure === "apparent" ? apparent[at] : entries[at] + 1;
  const count = (number) => number.toLocaleString("en-US");
  const bytes = (number) => {
    if (number < 1024) return `${number} B`;
    let unit = -1;
    do { number /= 1024; unit++; } while (number >= 1023.5 && unit < 5);
    return `${number.toFixed((number < 9.995) + (number < 99.95))} ${["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][unit]}`;
  };
  const shown = (number) => (state.measure === "entries" ? count(number) : bytes(number));
  const percent = (part, whole) => `${(whole > 0 ? (100 * part) / whole : 0).toFixed(1)}%`;
  const pathOf = (at) => {
    const path = [];
    for (; at >= 0; at = parents[at]) path.push(names[at]);
    return path.reverse().reduce((above, name) => (above === "" || above.endsWith("/") ? above : above + "/") + name, "");
  };

  /** What is in a directory, by the measure: the last may stand for all that is too small for this page. */
  const inside = (at) => {
    const found = [];
    let rest = value(at) - (state.measure === "entries" ? 1 : 0);
    for (let child = first[at]; child >= 0; child = next[child]) {
      found.push({ at: child, value: value(child) });
      rest -= value(child);
    }
    found.sort((a, b) => b.value - a.value);
    if (left[at]) found.push({ at: REST, of: at, value: Math.max(rest, 0), entries: left[at] });
    return found;
  };
  const nameOf = (at) => (at === 0 && names[0] === "" ? "all paths" : names[at]);
  const label = (item) =>
    item.at === REST ? `${count(item.entries)} smaller ${item.entries === 1 ? "entry" : "entries"}` : names[item.at];

  const make = (name, text, attributes) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  };
  const draw = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  let matches = null;
  const search = () => {
    const wanted = state.query.toLowerCase();
    matches = null;
    if (wanted === "") return;
    matches = new Set();
    for (let at = 0; at < size; at++) if (names[at].toLowerCase().includes(wanted)) matches.add(at);
  };

  /** The rows of the table: what is in the directory, or what the search has found. */
  const listed = () => {
    if (!matches) return inside(state.node);
    return [...matches].map((at) => ({ at, value: value(at) })).sort((a, b) => b.value - a.value);
  };
  let rows = [];

  const table = () => {
    rows = listed();
    const whole = value(matches ? 0 : state.node);
    const body = by("rows");
    body.replaceChildren();
    rows.slice(0, state.rows).forEach((item, index) => {
      const row = make("tr", undefined, { "data-index": index, "aria-selected": index === state.chosen });
      row.className = item.at === REST ? "rest" : isDirectory(item.at) ? "directory" : "leaf";
      const name = make("td", label(item) + (isDirectory(item.at) && !names[item.at].endsWith("/") ? "/" : ""));
      if (kinds[item.at] === "l" || kinds[item.at] === "o") name.title = KINDS[kinds[item.at]];
      if (marks[item.at]) name.append(make("span", marks[item.at], { class: "where amiss" }));
      if (matches && item.at > 0) name.append(make("span", pathOf(parents[item.at]), { class: "where" }));
      const bar = make("i");
      bar.style.width = `${whole > 0 ? (60 * item.value) / whole : 0}%`;
      bar.style.setProperty("--hue", `var(--h${matches || item.at === REST ? 8 : Math.min(index, 8)})`);
      const share = make("td");
      const line = make("div", undefined, { class: "share" });
      line.append(bar, make("span", percent(item.value, whole)));
      share.append(line);
      const inner = item.at === REST ? "" : isDirectory(item.at) ? count(entries[item.at]) : "";
      row.append(name, make("td", shown(item.value), { class: "number" }), share, make("td", inner, { class: "number" }));
      body.append(row);
    });
    const hidden = rows.length - state.rows;
    by("more").hidden = hidden <= 0;
    by("more").textContent = `Show ${count(Math.min(Math.max(hidden, 0), 1000))} more of ${count(rows.length)}`;
    by("note").textContent = matches
      ? `${count(rows.length)} of the ${count(size)} entries of this page match.`
      : scan.left > 0 && state.node === 0
        ? `This page holds the ${count(size)} largest of ${count(scan.entries)} entries; the others are summed up where they lie.`
        : "";
    by("size-head").textContent = { disk: "On disk", apparent: "Length", entries: "Entries" }[state.measure];
  };

  const choose = (index) => {
    const before = by("rows").querySelector('[aria-selected="true"]');
    if (before) before.setAttribute("aria-selected", "false");
    state.chosen = Math.max(0, Math.min(index, Math.min(rows.length, state.rows) - 1));
    const row = by("rows").children[state.chosen];
    if (row) {
      row.setAttribute("aria-selected", "true");
      row.scrollIntoView({ block: "nearest" });
    }
    const at = rows[state.chosen] ? rows[state.chosen].at : REST;
    for (const cell of document.querySelectorAll(".cell.chosen")) cell.classList.remove("chosen");
    const cell = at === REST ? null : document.querySelector(`.cell[data-at="${at}"]`);
    if (cell) cell.classList.add("chosen");
  };

  /** Squarified treemap (Bruls, Huizing, van Wijk): rows whose cells are as square as can be. */
  const squarify = (items, x, y, width, height, place) => {
    let sum = items.reduce((sum, item) => sum + item.value, 0);
    for (let begin = 0; begin < items.length && sum > 0; ) {
      const side = Math.min(width, height);
      const scale = (width * height) / sum;
      let end = begin, row = 0, worst = Infinity;
      while (end < items.length) {
        const larger = row + items[end].value;
        const length = (larger * scale) / side;
        const ratio = Math.max(
          (items[begin].value * scale) / (length * length), (length * length) / (items[end].value * scale));
        if (end > begin && ratio > worst) break;
        [worst, row, end] = [ratio, larger, end + 1];
      }
      const length = (row * scale) / side;
      let along = 0;
      for (; begin < end; begin++) {
        const extent = (items[begin].value * scale) / length || 0;
        if (width >= height) place(items[begin], x, y + along, length, extent);
        else place(items[begin], x + along, y, extent, length);
        along += extent;
      }
      if (width >= height) { x += length; width -= length; } else { y += length; height -= length; }
      sum -= row;
    }
  };

  const CELLS = 4000;
  const cellOf = (item, hue, more) => ({
    ...more,
    class: `cell ${item.at === REST ? "rest" : isDirectory(item.at) ? "directory" : "leaf"}${
      matches && !matches.has(item.at) ? " dim" : ""}`,
    style: `--hue: var(--h${Math.min(hue, 8)})`,
    "data-at": item.at,
    "data-label": `${item.at === REST ? pathOf(item.of) + ": " + label(item) : pathOf(item.at)}\n${shown(item.value)}`,
  });
  const cut = (text, width) => {
    const room = Math.floor(width / 6.6);
    return text.length <= room ? text : room < 3 ? "" : text.slice(0, room - 1) + "…";
  };

  const treemap = (svg, width, height) => {
    const queue = [{ at: state.node, hue: -1, x: 0, y: 0, width, height }];
    let cells = 0;
    for (let index = 0; index < queue.length && cells < CELLS; index++) {
      const box = queue[index];
      const items = inside(box.at).filter((item) => item.value > 0);
      let order = 0;
      squarify(items, box.x, box.y, box.width, box.height, (item, x, y, width, height) => {
        const hue = box.hue < 0 ? order++ : box.hue;
        if (width < 2 || height < 2 || cells >= CELLS) return;
        cells++;
        svg.append(draw("rect", cellOf(item, hue, { x, y, width, height })));
        const inner = isDirectory(item.at) && first[item.at] >= 0 && width > 24 && height > 34;
        if (width > 34 && height > 16) {
          svg.append(draw("text", { x: x + 4, y: y + 13 }, cut(label(item), width - 8)));
          if (!inner && height > 32) svg.append(draw("text", { x: x + 4, y: y + 28, opacity: .7 }, cut(shown(item.value), width - 8)));
        }
        if (inner) queue.push({ at: item.at, hue, x: x + 2, y: y + 18, width: width - 4, height: height - 20 });
      });
    }
  };

  const RINGS = 5;
  const sunburst = (svg, width, height) => {
    const radius = Math.min(width, height) / 2 - 6;
    const [x, y] = [width / 2, height / 2];
    const edge = (ring) => radius * (0.24 + (0.76 * ring) / RINGS);
    const point = (angle, distance) => `${x + distance * Math.sin(angle)} ${y - distance * Math.cos(angle)}`;
    const queue = [{ at: state.node, hue: -1, ring: 0, from: 0, to: 2 * Math.PI }];
    let cells = 0;
    for (let index = 0; index < queue.length && cells < CELLS; index++) {
      const arc = queue[index];
      const whole = value(arc.at);
      let from = arc.from, order = 0;
      for (const item of inside(arc.at)) {
        const to = from + (whole > 0 ? ((arc.to - arc.from) * item.value) / whole : 0);
        const hue = arc.hue < 0 ? order++ : arc.hue;
        const begin = from;
        from = to;
        if (to - begin < 0.004 || cells++ >= CELLS) continue;
        const [inner, outer] = [edge(arc.ring), edge(arc.ring + 1)];
        // A full circle has no two ends to draw an arc between.
        const end = Math.min(to, begin + 2 * Math.PI - 1e-4);
        const large = end - begin > Math.PI ? 1 : 0;
        const d = `M${point(begin, inner)}L${point(begin, outer)}A${outer} ${outer} 0 ${large} 1 ${point(end, outer)}` +
          `L${point(end, inner)}A${inner} ${inner} 0 ${large} 0 ${point(begin, inner)}Z`;
        svg.append(draw("path", cellOf(item, hue, { d })));
        const middle = (begin + end) / 2, room = (end - begin) * inner;
        if (room > 14) {
          const turn = (middle * 180) / Math.PI - 90, flip = turn > 90;
          const distance = (inner + outer) / 2;
          svg.append(draw("text", {
            transform: `translate(${point(middle, distance)}) rotate(${flip ? turn - 180 : turn})`,
            "text-anchor": "middle", dy: "4",
          }, cut(label(item), outer - inner - 8)));
        }
        if (isDirectory(item.at) && arc.ring + 1 < RINGS) queue.push({ at: item.at, hue, ring: arc.ring + 1, from: begin, to });
      }
    }
    svg.append(draw("circle", { class: "center", cx: x, cy: y, r: edge(0) - 2, "data-up": 1 }));
    const lines = [cut(nameOf(state.node).replace(/.*[/](?=.)/, ""), edge(0) * 1.7), shown(whole(state.node))];
    lines.forEach((line, at) => svg.append(draw("text", { x, y: y - 2 + 16 * at, "text-anchor": "middle" }, line)));
  };
  const whole = (at) => (state.measure === "entries" ? entries[at] : value(at));

  const chart = () => {
    const place = by("chart");
    const { width, height } = place.getBoundingClientRect();
    const kind = state.view === "treemap" ? "Treemap" : "Sunburst";
    const svg = draw("svg", {
      viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${kind} of ${pathOf(state.node)}`,
    });
    (state.view === "treemap" ? treemap : sunburst)(svg, width, height);
    place.className = state.view;
    place.replaceChildren(svg);
  };

  const head = () => {
    const path = by("path");
    path.replaceChildren();
    const above = [];
    for (let at = state.node; at >= 0; at = parents[at]) above.unshift(at);
    above.forEach((at, index) => {
      if (index > 0 && !names[above[index - 1]].endsWith("/")) path.append(make("span", "/"));
      path.append(make("button", nameOf(at), { type: "button", "data-open": at }));
    });
    path.append(make("span", `${shown(whole(state.node))}`));
    for (const button of document.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", button.dataset.view === state.view);
    }
    by("measure").value = state.measure;
    if (by("search").value !== state.query) by("search").value = state.query;
  };

  const show = () => {
    head();
    table();
    chart();
    choose(state.chosen);
    const hash = new URLSearchParams({ n: state.node, v: state.view, m: state.measure });
    if (state.query) hash.set("q", state.query);
    history.replaceState(null, "", `#${hash}`);
  };
  const open = (at) => {
    if (!isDirectory(at)) return;
    [state.node, state.query, state.chosen, state.rows] = [at, "", 0, 200];
    search();
    show();
  };
  const up = () => {
    const above = parents[state.node];
    if (above < 0) return;
    const came = state.node;
    open(above);
    choose(rows.findIndex((row) => row.at === came));
  };
  const openChosen = () => {
    const item = rows[state.chosen];
    if (!item || item.at === REST) return;
    if (isDirectory(item.at)) open(item.at);
    else if (matches && parents[item.at] >= 0) {
      open(parents[item.at]);
      choose(rows.findIndex((row) => row.at === item.at));
    }
  };
  const set = (change) => { Object.assign(state, change); show(); };
  const theme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  };
  const nextMeasure = () => set({ measure: MEASURES[(MEASURES.indexOf(state.measure) + 1) % MEASURES.length] });
  const find = (query) => {
    [state.query, state.chosen, state.rows] = [query, 0, 200];
    search();
    show();
  };

  const keys = {
    ArrowDown: () => choose(state.chosen + 1), ArrowUp: () => choose(state.chosen - 1),
    Home: () => choose(0), End: () => choose(Infinity),
    Enter: openChosen, ArrowRight: openChosen, ArrowLeft: up, Backspace: up,
    "/": () => by("search").focus(), t: () => set({ view: "treemap" }), s: () => set({ view: "sunburst" }),
    m: nextMeasure, d: theme, "?": () => by("keys").showModal(),
    Escape: () => { if (state.query) find(""); },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || by("keys").open) return;
    const searching = event.target === by("search");
    if (searching && !["ArrowDown", "ArrowUp", "Enter", "Escape"].includes(event.key)) return;
    // A button or a list that has the focus has its own Enter and arrows.
    if (event.target.closest("button, select, summary") && ["Enter", "ArrowDown", "ArrowUp"].includes(event.key)) return;
    if (!keys[event.key]) return;
    event.preventDefault();
    if (searching && event.key !== "ArrowDown" && event.key !== "ArrowUp") by("search").blur();
    keys[event.key]();
  });
  by("search").addEventListener("input", (event) => find(event.target.value));
  by("measure").addEventListener("change", (event) => set({ measure: event.target.value }));
  by("theme").addEventListener("click", theme);
  by("help").addEventListener("click", () => by("keys").showModal());
  by("more").addEventListener("click", () => { state.rows += 1000; table(); });
  document.addEventListener("click", (event) => {
    const { target } = event;
    const at = target.dataset && (target.dataset.at ?? target.dataset.open);
    if (target.dataset && target.dataset.view) set({ view: target.dataset.view });
    else if (at !== undefined) open(Number(at));
    else if (target.dataset && target.dataset.up) up();
    const row = target.closest("tbody tr");
    if (row) { choose(Number(row.dataset.index)); openChosen(); }
  });
  by("chart").addEventListener("pointermove", (event) => {
    const text = event.target.dataset.label;
    by("tip").hidden = !text;
    if (!text) return;
    by("tip").textContent = text;
    by("tip").style.left = `${Math.min(event.clientX + 14, Math.max(innerWidth - 300, 8))}px`;
    by("tip").style.top = `${Math.min(event.clientY + 16, innerHeight - 70)}px`;
  });
  by("chart").addEventListener("pointerleave", () => { by("tip").hidden = true; });
  let pending = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(() => { chart(); choose(state.chosen); });
  });

  const summary = () => {
    const { totals } = scan;
    const parts = [
      [count(totals.directories), "directories"], [count(totals.files), "files"], [count(totals.symlinks), "links"],
      [bytes(totals.disk_bytes), "on disk"], [bytes(totals.apparent_bytes), "long"],
    ];
    const place = by("totals");
    parts.forEach(([number, of], at) => place.append(at ? ", " : "", make("b", number), ` ${of}`));
    if (scan.taken) place.append(`; ${new Date(scan.taken * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`);
    if (scan.shared) {
      const parts = [`; ${bytes(scan.shared.bytes)} of ${count(scan.shared.files)} files lie where another file has them, too, and count once`];
      if (scan.shared.unknown_files) parts.push(`; of ${count(scan.shared.unknown_files)} files nobody knows`);
      place.append(...parts);
    }
    if (scan.interrupted) place.append(make("span", "; interrupted: this is a part of it", { class: "amiss" }));
    if (totals.errors === 0) return;
    by("errors").hidden = false;
    by("errors").querySelector("summary").textContent = `${count(totals.errors)} could not be read`;
    by("errors").querySelector("ul").append(...data.errors.map((line) => make("li", line)));
    if (data.errors.length < totals.errors) {
      by("errors").querySelector("ul").append(make("li", `${count(totals.errors - data.errors.length)} more`));
    }
  };

  const hash = new URLSearchParams(location.hash.slice(1));
  const wanted = Number(hash.get("n"));
  if (isDirectory(wanted)) state.node = wanted;
  if (["treemap", "sunburst"].includes(hash.get("v"))) state.view = hash.get("v");
  if (MEASURES.includes(hash.get("m"))) state.measure = hash.get("m");
  state.query = hash.get("q") || "";
  summary();
  search();
  show();
  // For who measures it: milliseconds from when the page was asked for until it was laid out.
  void document.body.offsetHeight;
  document.documentElement.dataset.shown = String(Math.round(performance.now()));
})();
