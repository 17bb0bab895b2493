// Renders the login page, which browsers get instead of a 401 problem, and the page
// that a password link opens. Each page is one file without external assets. Its content security
// policy allows only the page's own script and style.
import type { Config } from '../../config/config.ts'
import { operations } from '../../contract/operations.gen.ts'
import { type Download, download } from '../../kernel/files/download.ts'
import { escapeHtml, sourceHash } from '../../kernel/values/format.ts'
import type { Texts } from '../../texts/texts.ts'

// The colors and the typeface are those of http/docs/browser/page.css, which
// test/http/page-clothes.test.ts compares.
const style = `
:root{color-scheme:light dark;font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;--back:light-dark(#fff,#11181f);--raised:light-dark(#f5f7f9,#1a232c);--text:light-dark(#1f2933,#e2e8ee);--quiet:light-dark(#52606d,#a3b1bd);--line:light-dark(#e4e7eb,#2b3640);--accent:light-dark(#2b68a8,#8bbcec);--on-accent:light-dark(#fff,#06222f);--delete:light-dark(#b2481f,#f2a37f)}
body,body *{box-sizing:border-box}body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--raised);color:var(--text)}
main{width:min(27rem,94vw);margin:1rem 0;padding:1.75rem 2rem;background:var(--back);border:1px solid var(--line);border-radius:12px}h1{font-size:1.5rem;line-height:1.25;margin:0 0 1rem}[hidden]{display:none}
label{display:block;margin:.75rem 0 .25rem}input{font:inherit;color:inherit}input:not([type=checkbox]){width:100%;padding:.5rem .625rem;background:var(--back);border:1px solid var(--quiet);border-radius:6px}
button{margin-top:1rem;width:100%;padding:.6rem;font:inherit;font-weight:600;color:var(--on-accent);background:var(--accent);border:1px solid var(--accent);border-radius:6px;cursor:pointer}
button.quiet{color:var(--accent);background:none}button:disabled{opacity:.6}a{color:var(--accent)}:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
p{margin:1rem 0 0;overflow-wrap:anywhere}.small{font-size:.875rem;color:var(--quiet)}[role=alert]{color:var(--delete);font-weight:600}[role=alert]:empty,[role=status]:empty{display:none}`

/**
 * Script code that all pages share: API calls with the CSRF token, and forms that submit one
 * request at a time.
 */
const common = `
const $=(id)=>document.getElementById(id);
const say=(text,isBad)=>{$('bad').textContent=isBad?text:'';$('good').textContent=isBad?'':text};
const cookie=(name)=>document.cookie.split('; ').find((each)=>each.startsWith(name+'='))?.slice(name.length+1)??'';
const call=async(method,path,body)=>{
let answer;
try{answer=await fetch(path,{method,headers:{accept:'application/json','x-xsrf-token':cookie('__Host-XSRF-TOKEN')||cookie('XSRF-TOKEN'),...(body&&{'content-type':'application/json'})},...(body&&{body:JSON.stringify(body)})})}
catch{throw new Error('The server cannot be reached. Try again.')}
const reply=answer.status===204?{}:await answer.json().catch(()=>({}));
if(!answer.ok)throw Object.assign(new Error(reply.message??'The request failed. Try again.'),{fields:reply.errors});
return reply};
const onSubmit=(form,work)=>form.addEventListener('submit',async(event)=>{
event.preventDefault();say('');const button=form.querySelector('button');button.disabled=true;
try{await work()}catch(error){say(error.message,true)}finally{button.disabled=false}});`

const paths = {
  csrf: operations.getCsrfCookie.path,
  session: operations.createSession.path,
  forgot: operations.forgotPassword.path,
  reset: operations.resetPassword.path,
  documentation: '/api/admin/documentation',
}

const loginScript = `${common}
const show=(id,field)=>{for(const each of ['login','forgot','in'])$(each).hidden=each!==id;say('');$(field).focus()};
onSubmit($('login'),async()=>{
await call('GET','${paths.csrf}');
const {data}=await call('POST','${paths.session}',{email:$('email').value,password:$('password').value,remember:$('remember').checked});
$('password').value='';$('who').textContent='Signed in as '+data.name+' ('+data.email+').';
const isEntrance=location.pathname==='${paths.session}';
$('on').href=isEntrance?'${paths.documentation}':location.pathname+location.search;
$('on').textContent='Continue to '+(isEntrance?'the documentation':location.pathname);show('in','on')});
onSubmit($('forgot'),async()=>say((await call('POST','${paths.forgot}',{email:$('forgotten').value})).message));
onSubmit($('in'),async()=>{await call('DELETE','${paths.session}');show('login','email');say('Signed out.')});
$('to-forgot').addEventListener('click',()=>{$('forgotten').value=$('email').value;show('forgot','forgotten')});
$('to-login').addEventListener('click',()=>show('login','email'));
show('login','email')`

/** The texts of the page that the script shows. */
const shownTexts = ['reset.from_mail', 'reset.done', 'reset.bad_link', 'reset.different'] as const

const resetScript = (texts: Texts): string => `${common}
const texts=${JSON.stringify(Object.fromEntries(shownTexts.map((key) => [key, texts.say(key)]))).replaceAll('<', '\\u003c')};
const link=new URLSearchParams(location.hash.slice(1)),token=link.get('token'),email=link.get('email');
history.replaceState(null,'',location.pathname);
if(token&&email){$('who').textContent=email;$('username').value=email;$('reset').hidden=false;$('password').focus()}
else say(texts['reset.from_mail'],true);
onSubmit($('reset'),async()=>{
if($('password').value!==$('again').value)throw new Error(texts['reset.different']);
await call('POST','${paths.reset}',{email,token,password:$('password').value,password_confirmation:$('again').value}).catch((error)=>{
throw error.fields?.token?new Error(texts['reset.bad_link']):error});
$('reset').hidden=true;say(texts['reset.done']);$('on').hidden=false;$('on').focus()})`

interface Parts {
  title: string
  main: string
  script: string
  needsScript: string
  language: Pick<Texts, 'language' | 'direction'>
}

/**
 * Renders a page. The forms stay hidden until the script runs, because without the script a browser
 * would submit the password itself.
 */
function pageOf(config: Config, { title, main, script, needsScript, language }: Parts) {
  const html = `<!doctype html>
<html lang="${language.language}" dir="${language.direction}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · ${escapeHtml(config.appName)}</title><style>${style}</style></head>
<body><main>
<h1>${title}</h1>
<noscript><p>${needsScript}</p></noscript>
<p role="alert" id="bad"></p><p role="status" id="good"></p>
${main}
</main><script>${script}</script></body>
</html>
`
  const headers = {
    'cache-control': 'no-store',
    'x-frame-options': 'DENY',
    'content-security-policy': `default-src 'none'; style-src ${sourceHash(style)}; script-src ${sourceHash(script)}; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  }
  return { html, headers }
}

export function loginPage(config: Config): { html: string; headers: Record<string, string> } {
  const { html, headers } = pageOf(config, {
    title: `Sign in to ${escapeHtml(config.appName)}`,
    language: { language: 'en', direction: 'ltr' },
    needsScript: 'This page needs JavaScript. Turn it on in your browser and reload.',
    script: loginScript,
    main: `<form id="login" method="post" action="${paths.session}" hidden>
<label for="email">E-mail</label><input id="email" type="email" autocomplete="username" required>
<label for="password">Password</label><input id="password" type="password" autocomplete="current-password" maxlength="128" required>
<label><input id="remember" type="checkbox"> Stay signed in for 30 days</label>
<button>Sign in</button>
<button type="button" class="quiet" id="to-forgot">Forgot password?</button>
</form>
<form id="forgot" method="post" action="${paths.forgot}" hidden>
<label for="forgotten">Your e-mail</label><input id="forgotten" type="email" autocomplete="username" maxlength="254" required>
<button>Send reset link</button>
<button type="button" class="quiet" id="to-login">Back to sign in</button>
</form>
<form id="in" method="post" action="${paths.session}" hidden>
<p id="who"></p><p><a id="on" href="">Continue</a></p>
<button class="quiet">Sign out</button>
</form>
<p class="small">API clients send <code>Accept: application/json</code> and <code>Authorization: Bearer &lt;token&gt;</code>. <a href="${paths.documentation}">Documentation</a></p>`,
  })
  return { html, headers: { 'www-authenticate': 'Bearer', ...headers } }
}

/** Returns the page of a password link, in the language of the mail with the link. */
export function resetPage(config: Config, texts: Texts): Download {
  const say: Texts['say'] = (...args) => escapeHtml(texts.say(...args))
  const { html, headers } = pageOf(config, {
    title: say('reset.title'),
    language: texts,
    needsScript: say('reset.needs_script'),
    script: resetScript(texts),
    main: `<form id="reset" method="post" action="${paths.reset}" hidden>
<p>${say('reset.account')} <strong id="who"></strong></p><input id="username" type="email" autocomplete="username" readonly hidden>
<label for="password">${say('reset.password', { min: 8, max: 128 })}</label><input id="password" type="password" autocomplete="new-password" minlength="8" maxlength="128" required>
<label for="again">${say('reset.again')}</label><input id="again" type="password" autocomplete="new-password" maxlength="128" required>
<button>${say('reset.submit')}</button>
</form>
<p><a id="on" href="${paths.session}" hidden>${say('reset.sign_in')}</a></p>`,
  })
  return download({ mediaType: 'text/html; charset=utf-8', body: html, headers })
}
