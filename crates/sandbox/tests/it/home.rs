//! The secrets of the home with namespaces; `landlock_level` tests the same without them.

use crate::secrets;
use crate::support::has_namespaces;

#[test]
fn secrets_of_the_home_are_not_read() {
    if has_namespaces() {
        secrets::are_not_read();
    }
}

#[test]
fn secrets_that_come_later_are_not_read() {
    if has_namespaces() {
        secrets::are_not_read_when_they_come_later();
    }
}

#[test]
fn secrets_behind_links_are_not_read() {
    if has_namespaces() {
        secrets::are_not_read_behind_links();
    }
}

#[test]
fn a_workspace_near_the_home_works_as_ever() {
    if has_namespaces() {
        secrets::leave_the_workspace_as_it_is();
    }
}
