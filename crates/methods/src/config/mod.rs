//! The configuration in the form that clients read and write.

mod effective;
mod forms;

pub use effective::saved;
pub use forms::{code, one_edit, read, several_edits, written};

#[cfg(test)]
mod tests;
