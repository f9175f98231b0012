//! Tokens of an issuer appear in no text that could be shown.

use std::fmt::Write as _;

use codex_config::LoginConfig;

use crate::world::{World, openai};

#[tokio::test(start_paused = true)]
async fn no_debug_text_and_no_error_holds_a_secret() {
    let world = World::new();
    let mut shown = String::new();
    let accounts = world.accounts();
    let browser = accounts.begin_browser(world.options()).await.unwrap();
    let _ = world.issuer.answer("GET", browser.url().strip_prefix(world.issuer.url()).unwrap(), false, b"");
    write!(shown, "{browser:?}").unwrap();
    drop(browser);
    let device = accounts.begin_device(world.options()).await.unwrap();
    write!(shown, "{device:?}").unwrap();
    device.finish().await.unwrap();

    let credentials = accounts.credentials(LoginConfig::default(), &openai());
    let used = credentials.authorize().await.unwrap();
    write!(shown, "{accounts:?} {credentials:?} {used:?} {:?} {:?}", world.stored(), world.tokens()).unwrap();
    world.issuer.void(world.tokens().refresh_token.unwrap().reveal());
    world.advance(9999);
    let error = credentials.authorize().await.unwrap_err();
    write!(shown, "{error} {error:?}").unwrap();
    let error = accounts.tokens(None).await.unwrap_err();
    write!(shown, "{error} {error:?} {:?}", error.hint()).unwrap();
    world.set_down(true);
    let (_, told) = accounts.log_out().await.unwrap();
    let error = told.unwrap_err();
    write!(shown, "{error} {error:?}").unwrap();

    let secrets = world.issuer.secrets();
    assert!(secrets.len() >= 6, "{secrets:?}");
    for secret in secrets {
        assert!(!shown.contains(&secret), "{secret} in {shown}");
    }
}
