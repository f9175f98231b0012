//! Logins with a browser, which the test simulates: it follows the issuer's redirects.

use codex_login::{BrowserLogin, LoginError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::world::World;

/// The address to which the issuer redirects a browser that opens the login.
fn sent_to(world: &World, login: &BrowserLogin) -> String {
    let target = login.url().strip_prefix(world.issuer.url()).unwrap();
    world.issuer.answer("GET", target, false, b"").location.unwrap()
}

/// Opens a URL of this machine and returns the status.
pub(crate) async fn open(url: &str) -> u16 {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_at(rest.find('/').unwrap());
    let port = host.rsplit(':').next().unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

async fn begin(world: &World) -> BrowserLogin {
    world.accounts().begin_browser(world.options()).await.unwrap()
}

#[tokio::test]
async fn a_browser_brings_the_login() {
    let world = World::new();
    let login = begin(&world).await;
    let back = sent_to(&world, &login);
    let (ended, status) = tokio::join!(login.finish(), open(&back));
    ended.unwrap();
    assert_eq!((status, world.tokens().account_id.as_deref()), (200, Some("acct-1")));
}

#[tokio::test]
async fn a_wrong_state_is_refused_and_the_right_one_still_works() {
    let world = World::new();
    let login = begin(&world).await;
    let back = sent_to(&world, &login);
    let (before, _) = back.split_once("state=").unwrap();
    let wrong = format!("{before}state=guessed");
    let browser = async { (open(&wrong).await, open(&back).await) };
    let (ended, statuses) = tokio::join!(login.finish(), browser);
    ended.unwrap();
    assert_eq!(statuses, (403, 200));
}

#[tokio::test]
async fn a_user_who_declines_ends_the_login() {
    let world = World::new();
    world.issuer.deny("access_denied");
    let login = begin(&world).await;
    let back = sent_to(&world, &login);
    let (ended, status) = tokio::join!(login.finish(), open(&back));
    assert_eq!((ended.unwrap_err().to_string().as_str(), status), ("the login was refused: access_denied", 400));
    assert_eq!(world.stored().tokens, None);
}

#[tokio::test]
async fn a_code_of_another_login_is_worth_nothing() {
    let world = World::new();
    let (first, second) = (begin(&world).await, begin(&world).await);
    let (stolen, own) = (sent_to(&world, &first), sent_to(&world, &second));
    let code = stolen.split_once("code=").unwrap().1.split('&').next().unwrap();
    let (head, tail) = own.split_once("code=").unwrap();
    let forged = format!("{head}code={code}&{}", tail.split_once('&').unwrap().1);
    let (ended, status) = tokio::join!(second.finish(), open(&forged));
    let error = ended.unwrap_err();
    assert!(
        matches!(&error, LoginError::Status { status: 400, code: Some(code) } if code == "invalid_grant"),
        "{error}"
    );
    assert_eq!((status, world.stored().tokens), (400, None));
}

#[tokio::test]
async fn another_program_can_ask_for_the_port() {
    let world = World::new();
    let login = begin(&world).await;
    let back = sent_to(&world, &login);
    let cancel = format!("{}/cancel", back.split_once("/auth").unwrap().0);
    let (ended, status) = tokio::join!(login.finish(), open(&cancel));
    assert!(matches!(ended, Err(LoginError::Cancelled)), "{ended:?}");
    assert_eq!(status, 200);
}

#[tokio::test]
async fn the_next_port_is_used_when_one_is_taken_and_given_back_by_who_is_dropped() {
    let world = World::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (first, second) = (taken.local_addr().unwrap().port(), free.local_addr().unwrap().port());
    drop(free);
    let mut options = world.options();
    options.ports = vec![first, second];
    let login = world.accounts().begin_browser(options.clone()).await.unwrap();
    assert!(login.url().contains(&format!("localhost%3A{second}%2Fauth%2Fcallback")), "{}", login.url());
    let error = world.accounts().begin_browser(options.clone()).await.unwrap_err();
    assert!(matches!(&error, LoginError::Ports { ports } if *ports == [first, second]), "{error}");
    drop(login);
    assert!(world.accounts().begin_browser(options).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_longer_than_ten_minutes() {
    let world = World::new();
    let login = begin(&world).await;
    let begin = tokio::time::Instant::now();
    let error = login.finish().await.unwrap_err();
    assert_eq!(error.to_string(), "the login was not completed within 10 minutes");
    assert_eq!(begin.elapsed().as_secs(), 600);
}
