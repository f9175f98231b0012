//! `account/*` and the older methods of v1: who is logged in, logging in, logging out, and the rate limits of the
//! account.

use std::sync::{Arc, Weak};

use codex_config::{
    self as config, AccountError, Auth, Bearer, BegunLogin, Config, Env, ExternalTokens, LoginKind, Pending,
    ProviderConfig, Secret, TokenRefresher, TokenSource,
};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::auth::{
    AuthStatusChangeNotification, CancelLoginChatGptParams, GetAuthStatusParams, GetAuthStatusResponse,
    LoginApiKeyParams, LoginChatGptCompleteNotification, LoginChatGptResponse,
};
use codex_protocol::v1::user::{GetUserAgentResponse, UserInfoResponse};
use codex_protocol::v2::account::{
    Account, AccountLoginCompletedNotification, AccountUpdatedNotification, AuthMode, AuthTokensLogin, BrowserLogin,
    CancelLoginAccountParams, CancelLoginAccountResponse, CancelLoginAccountStatus, ChatgptAccount, DeviceCodeLogin,
    GetAccountParams, GetAccountRateLimitsResponse, GetAccountResponse, LoginAccountParams, LoginAccountResponse,
};
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::hidden::Hidden;
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::request::{ChatgptAuthTokensRefreshParams, ServerRequest};

use super::with_host;
use crate::app::connection::Connection;
use crate::app::dispatch::serve;
use crate::app::host::{Host, Start};
use crate::app::stored_threads::tell_all;

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

/// The result of a change of the login, and the notifications for all clients after the response.
type Announced<T> = Result<(T, Vec<ServerNotification>), ErrorObject>;

/// The notifications that report the end of a login.
#[derive(Clone, Copy)]
enum LoginDialect {
    V1,
    V2,
}

async fn start_login(connection: &Arc<Connection>, params: LoginAccountParams) -> Announced<LoginAccountResponse> {
    let kind = match params {
        LoginAccountParams::ApiKey(login) => {
            store_key(connection, login.api_key.0).await?;
            return Ok((LoginAccountResponse::ApiKey, vec![completed(None, None), updated(connection).await]));
        }
        LoginAccountParams::ChatgptAuthTokens(login) => {
            adopt(connection, login).await?;
            return Ok((
                LoginAccountResponse::ChatgptAuthTokens,
                vec![completed(None, None), updated(connection).await],
            ));
        }
        LoginAccountParams::Chatgpt => LoginKind::Browser,
        LoginAccountParams::ChatgptDeviceCode => LoginKind::DeviceCode,
        LoginAccountParams::AmazonBedrock(_) | LoginAccountParams::AmazonBedrockAccessKeys(_) => {
            return Err(ErrorObject::invalid("this program keeps no keys of Amazon Bedrock"));
        }
        LoginAccountParams::Other(_) => return Err(ErrorObject::invalid("there is no login of this kind")),
    };
    let BegunLogin { id: login_id, url, user_code, end } = begin(connection, kind).await?;
    go_on(connection, LoginDialect::V2, login_id.clone(), end);
    let answer = match user_code {
        Some(user_code) => {
            LoginAccountResponse::ChatgptDeviceCode(DeviceCodeLogin { login_id, verification_url: url, user_code })
        }
        None => LoginAccountResponse::Chatgpt(BrowserLogin { login_id, auth_url: url }),
    };
    Ok((answer, Vec::new()))
}

async fn log_in_with_chatgpt(connection: &Arc<Connection>, _: Empty) -> Result<LoginChatGptResponse, ErrorObject> {
    let BegunLogin { id: login_id, url: auth_url, end, .. } = begin(connection, LoginKind::Browser).await?;
    go_on(connection, LoginDialect::V1, login_id.clone(), end);
    Ok(LoginChatGptResponse { login_id, auth_url })
}

async fn begin(connection: &Arc<Connection>, kind: LoginKind) -> Result<BegunLogin, ErrorObject> {
    let config = chatgpt_config(connection).await?;
    let Start { accounts, originator, .. } = &connection.host.start;
    let originator = connection.client().map_or(originator.as_str(), |client| connection.host.originator(&client.name));
    accounts.begin(kind, &config, originator).await.map_err(refused)
}

/// The configuration, if it allows a login with `ChatGPT`.
async fn chatgpt_config(connection: &Arc<Connection>) -> Result<Arc<Config>, ErrorObject> {
    let config = with_host(connection, Host::config).await?;
    if config.forced_login() == Some("api") {
        return Err(ErrorObject::invalid("ChatGPT login is disabled. Use API key login instead."));
    }
    Ok(config)
}

/// Notifies all clients when a login ends.
fn go_on(
    connection: &Arc<Connection>,
    wording: LoginDialect,
    id: String,
    end: Pending<'static, Result<(), AccountError>>,
) {
    let connection = Arc::clone(connection);
    tokio::spawn(async move {
        let ended = end.await;
        connection.host.start.config.forget();
        let is_done = ended.is_ok();
        // The names that clients of other releases know.
        let error = ended.err().map(|error| format!("Login server error: {error}"));
        let (first, second) = match wording {
            LoginDialect::V1 => {
                let ended = LoginChatGptCompleteNotification { login_id: id, success: is_done, error };
                (ServerNotification::LoginChatGptComplete(ended), changed(Some(AuthMode::Chatgpt)))
            }
            LoginDialect::V2 => (completed(Some(id), error), updated(&connection).await),
        };
        tell_all(&connection, &first).await;
        if is_done {
            tell_all(&connection, &second).await;
        }
    });
}

async fn end_login(connection: &Arc<Connection>, _: Empty) -> Announced<Empty> {
    let done = log_out(connection).await?;
    Ok((done, vec![updated(connection).await]))
}

async fn log_in_with_key(connection: &Arc<Connection>, params: LoginApiKeyParams) -> Announced<Empty> {
    Ok((store_key(connection, params.api_key.0).await?, vec![changed(Some(AuthMode::ApiKey))]))
}

async fn log_out_of_chatgpt(connection: &Arc<Connection>, _: Empty) -> Announced<Empty> {
    Ok((log_out(connection).await?, vec![changed(None)]))
}

fn completed(login_id: Option<String>, error: Option<String>) -> ServerNotification {
    let login = AccountLoginCompletedNotification { login_id, success: error.is_none(), error };
    ServerNotification::AccountLoginCompleted(login)
}

/// The current authentication mode.
async fn updated(connection: &Arc<Connection>) -> ServerNotification {
    let auth = connection.host.start.accounts.auth().await.unwrap_or_default();
    let tokens = auth.tokens.as_ref().filter(|_| auth.is_chatgpt());
    let auth_mode = match tokens {
        Some(_) => Some(chatgpt_mode(&auth)),
        None => auth.api_key.as_ref().map(|_| AuthMode::ApiKey),
    };
    let plan_type = tokens.and_then(|tokens| auth.plan.clone().or_else(|| tokens.claims().plan));
    ServerNotification::AccountUpdated(AccountUpdatedNotification { auth_mode, plan_type })
}

fn chatgpt_mode(auth: &Auth) -> AuthMode {
    if auth.mode.as_deref() == Some("chatgptAuthTokens") { AuthMode::ChatgptAuthTokens } else { AuthMode::Chatgpt }
}

fn changed(auth_method: Option<AuthMode>) -> ServerNotification {
    ServerNotification::AuthStatusChange(AuthStatusChangeNotification { auth_method })
}

pub(super) fn refused(error: AccountError) -> ErrorObject {
    if error.is_internal { ErrorObject::internal(error.message) } else { ErrorObject::invalid(error.message) }
}

/// Reads the configuration together with the login.
async fn with_login<T>(
    connection: &Connection,
    work: impl FnOnce(&Env, &Config, &Auth) -> T,
) -> Result<T, ErrorObject> {
    let config = with_host(connection, Host::config).await?;
    let auth = connection.host.start.accounts.auth().await.map_err(refused)?;
    Ok(work(connection.host.start.config.env(), &config, &auth))
}

/// Uses tokens that the client supplies, and requests new ones from it when they are rejected.
async fn adopt(connection: &Arc<Connection>, login: AuthTokensLogin) -> Result<(), ErrorObject> {
    let workspaces = chatgpt_config(connection).await?.login().forced_workspaces;
    if !workspaces.is_empty() && !workspaces.contains(&login.chatgpt_account_id) {
        return Err(ErrorObject::invalid("forced_chatgpt_workspace_id does not allow this workspace"));
    }
    let client = Arc::new(TokenClient(Arc::downgrade(connection)));
    connection.host.start.accounts.adopt(external(login), client);
    connection.host.start.config.forget();
    Ok(())
}

fn external(login: AuthTokensLogin) -> ExternalTokens {
    let AuthTokensLogin { access_token, chatgpt_account_id: account_id, chatgpt_plan_type: plan } = login;
    ExternalTokens { access_token: Secret::new(access_token.0), account_id, plan }
}

/// The client that supplied the tokens.
struct TokenClient(Weak<Connection>);

impl TokenRefresher for TokenClient {
    fn refresh<'a>(&'a self, account_id: &'a str) -> Pending<'a, Result<ExternalTokens, String>> {
        Box::pin(async move {
            let previous_account_id = Some(account_id.to_owned());
            let params = ChatgptAuthTokensRefreshParams { reason: "unauthorized".into(), previous_account_id };
            let connection = self.0.upgrade().ok_or("the client has left")?;
            let answer = connection.request(&ServerRequest::ChatgptAuthTokensRefresh(params)).await;
            let answer = answer.ok_or("the client has left")?.map_err(|error| error.message)?;
            let login = serde_json::from_str(&answer).map_err(|_| "its answer has no tokens")?;
            Ok(external(login))
        })
    }
}

fn cancel_with_chatgpt(connection: &Arc<Connection>, params: CancelLoginChatGptParams) -> Result<Empty, ErrorObject> {
    if connection.host.start.accounts.cancel(&params.login_id) {
        Ok(Empty {})
    } else {
        Err(ErrorObject::invalid(format!("login id not found: {}", params.login_id)))
    }
}

async fn store_key(connection: &Arc<Connection>, key: String) -> Result<Empty, ErrorObject> {
    let Start { accounts, config, .. } = &connection.host.start;
    if with_host(connection, Host::config).await?.forced_login() == Some("chatgpt") {
        return Err(ErrorObject::invalid("API key login is disabled. Use ChatGPT login instead."));
    }
    let stored = accounts.store_key(Secret::new(key)).await;
    config.forget();
    stored.map(|()| Empty {}).map_err(refused)
}

async fn log_out(connection: &Arc<Connection>) -> Result<Empty, ErrorObject> {
    let Start { accounts, config, .. } = &connection.host.start;
    let done = accounts.log_out().await;
    config.forget();
    done.map(|()| Empty {}).map_err(refused)
}

fn cancel(connection: &Arc<Connection>, params: CancelLoginAccountParams) -> CancelLoginAccountResponse {
    let is_cancelled = connection.host.start.accounts.cancel(&params.login_id);
    let status = if is_cancelled { CancelLoginAccountStatus::Canceled } else { CancelLoginAccountStatus::NotFound };
    CancelLoginAccountResponse { status }
}

/// Renews the login if the client requests it. A login that cannot be renewed is reported unchanged.
async fn renew_if(is_wanted: bool, connection: &Arc<Connection>) {
    if is_wanted {
        let _: Result<(), AccountError> = connection.host.start.accounts.renew().await;
    }
}

async fn read(connection: &Arc<Connection>, params: GetAccountParams) -> Result<GetAccountResponse, ErrorObject> {
    renew_if(params.refresh_token, connection).await;
    with_login(connection, |env, config, auth| account(auth, &config.provider, env)).await
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

async fn rate_limits(connection: &Arc<Connection>, _: Empty) -> Result<GetAccountRateLimitsResponse, ErrorObject> {
    match read(connection, GetAccountParams::default()).await?.account {
        Some(Account::Chatgpt(_)) => {}
        Some(Account::ApiKey | Account::Other(_)) => {
            return Err(ErrorObject::invalid("chatgpt authentication required to read rate limits"));
        }
        None => return Err(ErrorObject::invalid("codex account authentication required to read rate limits")),
    }
    let login = with_host(connection, Host::config).await?.login();
    let limits = connection.host.start.accounts.limits(login).await;
    let limits =
        limits.map_err(|error| ErrorObject::internal(format!("failed to fetch codex rate limits: {error}")))?;
    Ok(GetAccountRateLimitsResponse {
        rate_limits: limits.into(),
        rate_limits_by_limit_id: None,
        account_id: with_login(connection, |_, _, auth| auth.tokens.as_ref()?.account()).await?,
    })
}

async fn status(
    connection: &Arc<Connection>,
    params: GetAuthStatusParams,
) -> Result<GetAuthStatusResponse, ErrorObject> {
    renew_if(params.refresh_token.unwrap_or(false), connection).await;
    let with_token = params.include_token.unwrap_or(false);
    with_login(connection, |env, config, auth| {
        let bearer = auth.in_use(&config.provider, env);
        auth_status(bearer.as_ref(), &config.provider, with_token)
    })
    .await
}

/// The token is in the answer only if the client requests it.
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

    /// The recorded cases `v2-account-apikey` and `v1-auth` of 0.77.
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
    fn a_login_without_claims_has_an_unknown_plan() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::write(home.auth_file(), r#"{"tokens":{"id_token":"broken","access_token":"t"}}"#).unwrap();
        let expected = json!({"type": "chatgpt", "email": null, "planType": "unknown"});
        assert_eq!(shown(&home, &openai(&home))["account"], expected);
    }
}
