//! `account/*` and its older kin: who is logged in, logging in with a key, logging out.

use std::sync::Arc;

use codex_config::{self as config, Auth, AuthError, Bearer, Env, ProviderConfig, TokenSource};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::auth::{
    AuthStatusChangeNotification, CancelLoginChatGptParams, GetAuthStatusParams, GetAuthStatusResponse,
    LoginApiKeyParams, LoginChatGptResponse,
};
use codex_protocol::v1::user::{GetUserAgentResponse, UserInfoResponse};
use codex_protocol::v2::account::{
    Account, AccountLoginCompletedNotification, AccountUpdatedNotification, AuthMode, CancelLoginAccountParams,
    CancelLoginAccountResponse, CancelLoginAccountStatus, ChatgptAccount, GetAccountParams,
    GetAccountRateLimitsResponse, GetAccountResponse, LoginAccountParams, LoginAccountResponse,
};
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::hidden::Hidden;
use codex_protocol::v2::notification::ServerNotification;

use super::{explain, with_host};
use crate::app::connection::Connection;
use crate::app::dispatch::serve;
use crate::app::host::Host;

serve! {
    tells {
        AccountLoginStart => start_login,
        AccountLogout => end_login,
        LoginApiKey => log_in_with_key,
        LogoutChatGpt => log_out_of_chatgpt,
    }
    sure {
        AccountLoginCancel => cancel,
        GetUserAgent => user_agent,
    }
    plain {
        CancelLoginChatGpt => cancel_with_chatgpt,
    }
    waits {
        AccountRead => read,
        LoginChatGpt => log_in_with_chatgpt,
        AccountRateLimitsRead => rate_limits,
        GetAuthStatus => status,
        UserInfo => user_info,
    }
}

/// What comes of a change of the login, and what all clients are told of it after the answer.
type Told<T> = Result<(T, Vec<ServerNotification>), ErrorObject>;

async fn start_login(connection: &Arc<Connection>, params: LoginAccountParams) -> Told<LoginAccountResponse> {
    let answer = log_in(connection, params).await?;
    Ok((answer, vec![completed(), updated(Some(AuthMode::ApiKey))]))
}

async fn end_login(connection: &Arc<Connection>, _: Empty) -> Told<Empty> {
    Ok((log_out(connection).await?, vec![updated(None)]))
}

async fn log_in_with_key(connection: &Arc<Connection>, params: LoginApiKeyParams) -> Told<Empty> {
    Ok((store_key(connection, params.api_key.0).await?, vec![changed(Some(AuthMode::ApiKey))]))
}

async fn log_out_of_chatgpt(connection: &Arc<Connection>, _: Empty) -> Told<Empty> {
    Ok((log_out(connection).await?, vec![changed(None)]))
}

fn completed() -> ServerNotification {
    let login = AccountLoginCompletedNotification { login_id: None, success: true, error: None };
    ServerNotification::AccountLoginCompleted(login)
}

fn updated(auth_mode: Option<AuthMode>) -> ServerNotification {
    ServerNotification::AccountUpdated(AccountUpdatedNotification { auth_mode, plan_type: None })
}

fn changed(auth_method: Option<AuthMode>) -> ServerNotification {
    ServerNotification::AuthStatusChange(AuthStatusChangeNotification { auth_method })
}

fn refused(error: AuthError) -> ErrorObject {
    let text = explain(&error, error.hint());
    match error {
        AuthError::Read { .. } | AuthError::Write { .. } => ErrorObject::internal(text),
        AuthError::Syntax { .. }
        | AuthError::Member { .. }
        | AuthError::BadKey
        | AuthError::NoVariable { .. }
        | AuthError::NoLogin { .. } => ErrorObject::invalid(text),
    }
}

/// What the configuration and the login say together.
async fn with_login<T: Send + 'static>(
    connection: &Connection,
    work: impl FnOnce(&Host, &config::Config, Auth) -> T + Send + 'static,
) -> Result<T, ErrorObject> {
    with_host(connection, move |host| {
        let config = host.config()?;
        let auth = Auth::load(host.start.config.home()).map_err(refused)?;
        Ok(work(host, &config, auth))
    })
    .await
}

async fn log_in(connection: &Arc<Connection>, params: LoginAccountParams) -> Result<LoginAccountResponse, ErrorObject> {
    let way = match params {
        LoginAccountParams::ApiKey(login) => {
            return store_key(connection, login.api_key.0).await.map(|_| LoginAccountResponse::ApiKey);
        }
        LoginAccountParams::Chatgpt | LoginAccountParams::ChatgptDeviceCode => "with ChatGPT",
        LoginAccountParams::ChatgptAuthTokens(_) => "with tokens of ChatGPT",
        LoginAccountParams::AmazonBedrock(_) | LoginAccountParams::AmazonBedrockAccessKeys(_) => "with Amazon Bedrock",
        LoginAccountParams::Other(_) => "of this kind",
    };
    let is_forbidden = with_host(connection, |host| Ok(host.config()?.forced_login() == Some("api"))).await?;
    if is_forbidden {
        return Err(ErrorObject::invalid("ChatGPT login is disabled. Use API key login instead."));
    }
    Err(ErrorObject::invalid(format!("a login {way} is not supported by this release; log in with an API key")))
}

/// The older way to ask for a login with `ChatGPT`, refused like the newer one.
async fn log_in_with_chatgpt(connection: &Arc<Connection>, _: Empty) -> Result<LoginChatGptResponse, ErrorObject> {
    match log_in(connection, LoginAccountParams::Chatgpt).await {
        Ok(_) => Err(ErrorObject::internal("a login with ChatGPT has no address to go to")),
        Err(error) => Err(error),
    }
}

/// Every login that this release can do is done at once, so there is never one to cancel.
fn cancel_with_chatgpt(_: &Arc<Connection>, params: CancelLoginChatGptParams) -> Result<Empty, ErrorObject> {
    Err(ErrorObject::invalid(format!("login id not found: {}", params.login_id)))
}

async fn store_key(connection: &Arc<Connection>, key: String) -> Result<Empty, ErrorObject> {
    with_host(connection, move |host| {
        if host.config()?.forced_login() == Some("chatgpt") {
            return Err(ErrorObject::invalid("API key login is disabled. Use ChatGPT login instead."));
        }
        let stored = Auth::store_api_key(host.start.config.home(), &key);
        host.start.config.forget();
        stored.map(|()| Empty {}).map_err(refused)
    })
    .await
}

async fn log_out(connection: &Arc<Connection>) -> Result<Empty, ErrorObject> {
    with_host(connection, |host| {
        let removed = Auth::remove(host.start.config.home());
        host.start.config.forget();
        removed.map(|_| Empty {}).map_err(refused)
    })
    .await
}

/// Every login that this release can do is done at once, so there is never one to cancel.
fn cancel(_: &Arc<Connection>, _: CancelLoginAccountParams) -> CancelLoginAccountResponse {
    CancelLoginAccountResponse { status: CancelLoginAccountStatus::NotFound }
}

async fn read(connection: &Arc<Connection>, _: GetAccountParams) -> Result<GetAccountResponse, ErrorObject> {
    with_login(connection, |host, config, auth| account(&auth, &config.provider, host.start.config.env())).await
}

fn account(auth: &Auth, provider: &ProviderConfig, env: &Env) -> GetAccountResponse {
    let account = auth.account(provider, env).map(|account| match account {
        config::Account::ApiKey => Account::ApiKey,
        config::Account::Chatgpt { email, plan } => {
            Account::Chatgpt(ChatgptAccount { email, plan_type: plan.unwrap_or_else(|| "unknown".to_owned()) })
        }
    });
    GetAccountResponse { account, requires_openai_auth: provider.requires_openai_auth }
}

/// Limits are known from what comes with answers of the model; nobody is asked for them.
async fn rate_limits(connection: &Arc<Connection>, _: Empty) -> Result<GetAccountRateLimitsResponse, ErrorObject> {
    let account = read(connection, GetAccountParams::default()).await?.account;
    Err(ErrorObject::invalid(match account {
        Some(Account::Chatgpt(_)) => {
            "this release does not ask for rate limits; they come with turns as `account/rateLimits/updated`"
        }
        Some(Account::ApiKey | Account::Other(_)) => "chatgpt authentication required to read rate limits",
        None => "codex account authentication required to read rate limits",
    }))
}

async fn status(
    connection: &Arc<Connection>,
    params: GetAuthStatusParams,
) -> Result<GetAuthStatusResponse, ErrorObject> {
    let with_token = params.include_token.unwrap_or(false);
    with_login(connection, move |host, config, auth| {
        let bearer = auth.in_use(&config.provider, host.start.config.env());
        auth_status(bearer.as_ref(), &config.provider, with_token)
    })
    .await
}

/// The token is in the answer only if it is asked for.
fn auth_status(bearer: Option<&Bearer>, provider: &ProviderConfig, with_token: bool) -> GetAuthStatusResponse {
    GetAuthStatusResponse {
        auth_method: bearer.map(|bearer| match bearer.source {
            TokenSource::Login { .. } => AuthMode::Chatgpt,
            TokenSource::Variable(_) | TokenSource::Config | TokenSource::ApiKey => AuthMode::ApiKey,
        }),
        auth_token: bearer.filter(|_| with_token).map(|bearer| Hidden(bearer.token.reveal().to_owned())),
        requires_openai_auth: Some(provider.requires_openai_auth),
    }
}

fn user_agent(connection: &Arc<Connection>, _: Empty) -> GetUserAgentResponse {
    let user_agent = connection.client().map(|client| client.user_agent.clone()).unwrap_or_default();
    GetUserAgentResponse { user_agent }
}

async fn user_info(connection: &Arc<Connection>, _: Empty) -> Result<UserInfoResponse, ErrorObject> {
    with_login(connection, |_, _, auth| UserInfoResponse { alleged_user_email: auth.alleged_email() }).await
}

#[cfg(test)]
mod tests {
    use codex_config::{Home, Overrides};
    use serde_json::{Value as Json, json};

    use super::*;

    fn no_variables() -> Env {
        Env::from_iter::<[(&str, &str); 0]>([])
    }

    fn openai(home: &Home) -> ProviderConfig {
        config::Config::load(home, &no_variables(), &Overrides::default()).unwrap().provider
    }

    fn shown(home: &Home, provider: &ProviderConfig) -> Json {
        serde_json::to_value(account(&Auth::load(home).unwrap(), provider, &no_variables())).unwrap()
    }

    /// The cases `v2-account-apikey` and `v1-auth` as 0.77 played them.
    #[test]
    fn a_key_is_shown_as_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let provider = openai(&home);
        assert_eq!(shown(&home, &provider), json!({"account": null, "requiresOpenaiAuth": true}));
        Auth::store_api_key(&home, "sk-test-123").unwrap();
        assert_eq!(shown(&home, &provider), json!({"account": {"type": "apiKey"}, "requiresOpenaiAuth": true}));
        let local = shown(&home, &ProviderConfig::new("mock"));
        assert_eq!(local, json!({"account": null, "requiresOpenaiAuth": false}));

        let bearer = Auth::load(&home).unwrap().in_use(&provider, &no_variables());
        let status = |with_token| auth_status(bearer.as_ref(), &provider, with_token);
        assert_eq!(
            serde_json::to_value(status(true)).unwrap(),
            json!({"authMethod": "apikey", "authToken": "sk-test-123", "requiresOpenaiAuth": true})
        );
        assert_eq!(
            serde_json::to_value(status(false)).unwrap(),
            json!({"authMethod": "apikey", "authToken": null, "requiresOpenaiAuth": true})
        );
        assert!(!format!("{:?}", status(true)).contains("sk-"));
    }

    #[test]
    fn a_login_that_says_nothing_has_an_unknown_plan() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::write(home.auth_file(), r#"{"tokens":{"id_token":"broken","access_token":"t"}}"#).unwrap();
        let expected = json!({"type": "chatgpt", "email": null, "planType": "unknown"});
        assert_eq!(shown(&home, &openai(&home))["account"], expected);
    }
}
