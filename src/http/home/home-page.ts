// Renders the page at `/`. It has no external files, and its content security policy allows only
// its own script and style.
import type { Config } from '../../config/config.ts'
import { operations } from '../../contract/operations.gen.ts'
import { escapeHtml, sourceHash } from '../../kernel/values/format.ts'
import { mark, pageColors } from '../docs/assets.ts'
import { links } from './links.ts'

const style = `
:root{color-scheme:light dark;font:16px/1.55 system-ui,sans-serif;${pageColors}}
body{margin:0;background:var(--page);color:light-dark(#16222b,#e6edf2)}
main{box-sizing:border-box;max-width:50rem;margin:0 auto;padding:clamp(1.5rem,6vw,4rem) 1.25rem}
header{display:flex;align-items:center;gap:.9rem}header svg{width:2.75rem;height:2.75rem;flex:none}
h1{font-size:1.75rem;line-height:1.2;margin:0;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2.5rem 0 .25rem}
p{margin:.5rem 0 0}.quiet{color:var(--quiet)}a{color:var(--accent)}
ul{list-style:none;margin:1.75rem 0 0;padding:0;display:grid;gap:.75rem;grid-template-columns:repeat(auto-fit,minmax(14rem,1fr))}
li{border:1px solid var(--line);border-radius:.5rem;padding:.8rem 1rem}li>a:first-child{font-weight:600}
li span{display:block;font-size:.9rem;color:var(--quiet)}
figure{position:relative;margin:.6rem 0 0}
pre{margin:0;padding:.9rem 1rem;overflow-x:auto;background:var(--soft);border:1px solid var(--line);border-radius:.5rem;font:.85rem/1.6 ui-monospace,SFMono-Regular,Menlo,monospace}
pre:focus-visible,a:focus-visible,button:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
button{position:absolute;top:.5rem;right:.5rem;font:600 .8rem system-ui,sans-serif;padding:.3rem .7rem;color:var(--accent);background:var(--page);border:1px solid var(--line);border-radius:.3rem;cursor:pointer}
code{font-family:ui-monospace,SFMono-Regular,Menlo,monospace;font-size:.9em}[hidden]{display:none}
@media(max-width:36rem){pre{padding-top:2.6rem}}`

// Browsers allow clipboard access only on https and localhost. Elsewhere the buttons stay hidden.
const script = `
if(navigator.clipboard)for(const button of document.querySelectorAll('button')){
button.hidden=false;
button.addEventListener('click',async()=>{
try{await navigator.clipboard.writeText(button.nextElementSibling.textContent);button.textContent='Copied'}
catch{button.textContent='Not allowed'}
setTimeout(()=>{button.textContent='Copy'},1500)})}`

/** Returns a relative link, which also works if a proxy serves this program under a path. */
const href = (path: string): string => path.slice(1)

const sample = (label: string, text: string): string =>
  `<figure><button type="button" hidden>Copy</button><pre tabindex="0" aria-label="${label}">${escapeHtml(text)}</pre></figure>`

/** Returns the page. `base` is the base URL in the samples. */
export function homePage({ appName }: Config, base: string): { html: string; headers: Record<string, string> } {
  const signIn = `curl ${base}${operations.login.path} \\
  -H 'Accept: application/json' \\
  -H 'Content-Type: application/json' \\
  -d '{"email":"admin@example.com","password":"YOUR PASSWORD","device_name":"curl"}'`
  const list = `curl '${base}${operations.listLeads.path}?sort=-created_at' \\
  -H 'Accept: application/json' \\
  -H 'Authorization: Bearer YOUR TOKEN'`
  const name = escapeHtml(appName)
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${name}</title><link rel="icon" href="data:image/svg+xml,${encodeURIComponent(mark)}"><style>${style}</style></head>
<body><main>
<header>${mark.replace('<svg ', '<svg aria-hidden="true" ')}<h1>${name}</h1></header>
<p>A CRM with an HTTP API: leads in pipelines, persons and organizations, quotes, products, activities and e-mail.</p>
<p class="quiet">This server has no other user interface. Programs, and the documentation page, are its clients.</p>
<ul>
<li><a href="${href(links.documentation)}">Documentation</a><span>Every operation, to try out</span></li>
<li><a href="${href(links.sign_in)}">Sign in</a><span>A session for this browser</span></li>
<li><a href="${href(links.openapi_json)}">Contract</a><span>OpenAPI 3.1 as JSON, or <a href="${href(links.openapi_yaml)}">as YAML</a></span></li>
<li><a href="${href(links.postman_collection)}">Collection</a><span>For Postman, Bruno and others</span></li>
<li><a href="${href(links.problem_codes)}">Problem codes</a><span>Every error and what to do</span></li>
<li><a href="${href(links.readiness)}">Health</a><span>Database, worker, mail and disk</span></li>
</ul>
<h2>First call</h2>
<p class="quiet">Sign in. The reply holds a token.</p>
${sample('A call that signs in', signIn)}
<p class="quiet">Send the token with every other call.</p>
${sample('A call that lists leads', list)}
</main><script>${script}</script></body>
</html>
`
  return {
    html,
    headers: {
      'content-security-policy': `default-src 'none'; style-src ${sourceHash(style)}; script-src ${sourceHash(script)}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    },
  }
}
