//! What bdp asks of the operating system: the only unsafe code.
