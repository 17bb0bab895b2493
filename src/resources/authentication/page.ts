// The login page: what a browser gets instead of a 401 problem (DOMAIN 4.4). It works without script: the form posts to
// the login operation, which also takes form fields.
import { createHash } from 'node:crypto'
import type { Config } from '../../config.ts'
import { escapeHtml } from '../../kernel/format.ts'

const style = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:Canvas;color:CanvasText}
main{width:min(24rem,90vw)}h1{font-size:1.5rem;margin:0 0 1rem}
label{display:block;margin:.75rem 0 .25rem}input{width:100%;box-sizing:border-box;padding:.5rem;font:inherit}
button{margin-top:1rem;width:100%;padding:.6rem;font:inherit;font-weight:600;color:#fff;background:#0b6fa8;border:0;border-radius:.25rem;cursor:pointer}
p{margin:1rem 0 0}.small{font-size:.875rem;opacity:.85}code{overflow-wrap:anywhere}
[role=alert]{color:#b42318;font-weight:600}output{display:block;margin-top:1rem}`

const script = `
const form=document.querySelector('form'),alertLine=document.querySelector('[role=alert]'),out=document.querySelector('output');
form.addEventListener('submit',async(event)=>{event.preventDefault();alertLine.textContent='';
const answer=await fetch(form.action,{method:'POST',headers:{'content-type':'application/json',accept:'application/json'},body:JSON.stringify(Object.fromEntries(new FormData(form)))});
const body=await answer.json();
if(!answer.ok){alertLine.textContent=body.message;return}
form.hidden=true;out.textContent='';out.append('Signed in as '+body.data.name+'. Your bearer token: ');
const code=document.createElement('code');code.textContent=body.data.token;out.append(code)})`

const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

export function loginPage(config: Config): { html: string; headers: Record<string, string> } {
  const name = escapeHtml(config.appName)
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Sign in · ${name}</title><style>${style}</style></head>
<body><main>
<h1>Sign in to ${name}</h1>
<p role="alert"></p>
<form method="post" action="/api/admin/login">
<label for="email">E-mail</label><input id="email" name="email" type="email" autocomplete="username" required autofocus>
<label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required>
<input type="hidden" name="device_name" value="Browser">
<button type="submit">Sign in</button>
</form>
<output></output>
<p class="small">API clients send <code>Accept: application/json</code> and <code>Authorization: Bearer &lt;token&gt;</code>. <a href="/api/admin/documentation">Documentation</a></p>
</main><script>${script}</script></body>
</html>
`
  return {
    html,
    headers: {
      'www-authenticate': 'Bearer',
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'content-security-policy': `default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    },
  }
}
