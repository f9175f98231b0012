//! The two functions of the C mathematics library that the program needs: tokio weighs its polls with one, `SQLite`
//! ranks what it found with the other. For their sake the loader would map that whole library into every process, which
//! is half a megabyte of memory and a tenth of the time of a start.
#![allow(unsafe_code, reason = "their names are what the linker looks for")]

#[unsafe(no_mangle)]
extern "C" fn pow(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}

#[unsafe(no_mangle)]
extern "C" fn log(value: f64) -> f64 {
    libm::log(value)
}
