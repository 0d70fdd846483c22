//! A parallel file-system scan.
