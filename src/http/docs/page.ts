// Renders the HTML of the documentation: the frame with header, search, sidebar and sign-in form,
// the reference page, and the guide pages. The HTML contains the list of operations and tags, so a
// browser shows them before any script has run.
import { escapeHtml } from '../../kernel/values/format.ts'
import { type Guide, guides } from './guides.ts'
import type { OutlineOperation, OutlineTag } from './page-document.ts'

export const documentationPath = '/api/admin/documentation'

/** The versions in the URLs of files, which browsers may cache for a year. */
export interface PageVersions {
  files: string
  swaggerUi: string
}

export interface PageFacts {
  appName: string
  apiVersion: string
  outline: OutlineTag[]
  versions: PageVersions
}

/** The modules that reference.js imports. */
const earlyModules = [
  'dom.js',
  'fields.js',
  'frame.js',
  'highlight.js',
  'operation.js',
  'routes.js',
  'samples.js',
  'schema-words.js',
  'search.js',
  'session.js',
  'swagger.js',
  'tag-documents.js',
  'tags.js',
  'try-out.js',
  'try-parts.js',
]

const methodNames: Readonly<Record<string, string>> = { delete: 'del' }

const operationLink = (tag: OutlineTag, { id, method, path, summary }: OutlineOperation): string =>
  `<li><a href="${documentationPath}#/${encodeURIComponent(tag.name)}/${id}" data-operation="${id}">
<span class="method ${method}">${methodNames[method] ?? method}</span>
<span>${escapeHtml(summary)}<small>${escapeHtml(withoutPrefix(path))}</small></span></a></li>`

/** Returns the path without the prefix that nearly all paths have. */
const withoutPrefix = (path: string): string => path.replace(/^\/api\/admin(?=\/)/, '')

function sidebar({ outline }: PageFacts, guide: string | null): string {
  const links = guides.map(
    ({ name, title }) =>
      `<li><a href="${documentationPath}/guides/${name}"${name === guide ? ' aria-current="page"' : ''}>${escapeHtml(title)}</a></li>`,
  )
  const tags = outline.map(
    (
      tag,
    ) => `<details data-tag="${escapeHtml(tag.name)}"><summary>${escapeHtml(tag.name)} <span class="count">${tag.operations.length}</span></summary>
<ul>${tag.operations.map((each) => operationLink(tag, each)).join('\n')}</ul></details>`,
  )
  return `<nav id="sidebar" aria-label="Guides and operations">
<h2>Guides</h2>
<ul>${links.join('\n')}<li><a href="${documentationPath}/errors">Problem codes</a></li></ul>
<h2><a href="${documentationPath}">Reference</a></h2>
${tags.join('\n')}
</nav>`
}

const signIn = `<dialog id="sign-in" aria-labelledby="sign-in-title">
<form method="dialog"><button class="close" aria-label="Close">×</button></form>
<h2 id="sign-in-title">Authorize</h2>
<p id="signed-in" role="status"></p>
<form id="sign-in-form">
<label for="sign-in-email">E-mail address</label><input id="sign-in-email" type="email" autocomplete="username" required>
<label for="sign-in-password">Password</label><input id="sign-in-password" type="password" autocomplete="current-password" required>
<fieldset><legend>Sign in with</legend>
<label><input type="radio" name="kind" value="token" checked> a bearer token, as programs do</label>
<label><input type="radio" name="kind" value="cookie"> a cookie, as pages in a browser do; the page sends the CSRF token</label></fieldset>
<button class="primary">Sign in</button>
</form>
<form id="token-form">
<label for="token">Or paste a token</label><input id="token" autocomplete="off" spellcheck="false" placeholder="1|abc…" required>
<button>Use this token</button>
</form>
<p id="sign-in-error" role="alert"></p>
<p class="actions"><button id="copy-token" type="button" hidden>Copy <code>export ACCORD_TOKEN=…</code> for the samples</button>
<button id="sign-out" type="button" hidden>Sign out</button></p>
</dialog>`

interface Body {
  title: string
  main: string
  guide: string | null
  /** HTML for the end of the `head` element. */
  head: string
}

function frame(facts: PageFacts, { title, main, guide, head }: Body): string {
  const name = escapeHtml(facts.appName)
  const files = `${documentationPath}/files/${facts.versions.files}`
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" type="image/svg+xml" href="${files}/favicon.svg">
<script src="${files}/theme.js"></script>
<link rel="stylesheet" href="${files}/page.css">
${head}
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<button id="menu" type="button" aria-expanded="false" aria-controls="sidebar" aria-label="Menu">☰</button>
<a class="brand" href="${documentationPath}"><img src="${files}/favicon.svg" alt="" width="28" height="28">${name} <span>API ${escapeHtml(facts.apiVersion)}</span></a>
<div class="search" role="search"><input id="search" type="search" role="combobox" aria-expanded="false" aria-controls="options" aria-autocomplete="list" autocomplete="off" spellcheck="false" aria-label="Search operations, parameters, guides, problem codes and events" placeholder="Search   /"><div id="results" hidden><p role="status" hidden></p><div id="options" role="listbox" aria-label="Results"></div><p hidden></p></div></div>
<button id="theme" type="button" aria-label="Light or dark">◐</button>
<button id="authorize" type="button">Authorize</button>
</header>
<div class="columns">
${sidebar(facts, guide)}
<main id="main" tabindex="-1">
${main}
</main>
</div>
${signIn}
</body>
</html>
`
}

/** Returns a closed tag of the reference. tags.js opens it. */
const closedTag = ({ name, slug, description, operations }: OutlineTag): string =>
  `<section class="tag"><h3 class="opblock-tag" id="operations-tag-${name.replace(/ /g, '_')}" data-tag="${escapeHtml(name)}" data-slug="${slug}"><button type="button" aria-expanded="false"><span class="name">${escapeHtml(name)}</span><span class="what">${escapeHtml(description)}</span><span class="count">${operations.length}</span></button></h3></section>`

/** Returns the reference page. */
export function referencePage(facts: PageFacts): string {
  const { appName, versions, outline } = facts
  const files = `${documentationPath}/files/${versions.files}`
  const count = outline.reduce((sum, { operations }) => sum + operations.length, 0)
  const cards = guides.map(
    ({ name, title, summary }) =>
      `<li><a href="${documentationPath}/guides/${name}"><b>${escapeHtml(title)}</b> ${escapeHtml(summary)}</a></li>`,
  )
  const main = `<h1>${escapeHtml(appName)} API</h1>
<p class="lead">${count} operations under <code id="origin">/api/admin</code>. Requests and responses are JSON, and every error is a problem document with a <a href="${documentationPath}/errors">code</a>.
The contract: <a href="/api/admin/openapi.json">openapi.json</a>, <a href="/api/admin/openapi.yaml">openapi.yaml</a> (OpenAPI 3.1), with the custom attributes of this installation.
For Postman, Bruno, Insomnia and Hoppscotch: <a href="/api/admin/postman.json" download="accord.postman_collection.json">a collection</a> of all operations.</p>
<ul class="cards">${cards.join('\n')}</ul>
<h2 id="reference">Reference</h2>
<div id="swagger-ui">${outline.map(closedTag).join('')}</div>
<noscript><p>Without JavaScript, the list of operations beside this text and the contract files above are available.</p></noscript>`
  const preloads = earlyModules.map((name) => `<link rel="modulepreload" href="${files}/${name}">`)
  const head = `<link rel="stylesheet" href="${files}/operations.css">
${preloads.join('\n')}
<script type="module" src="${files}/reference.js"></script>`
  return frame(facts, { title: `${appName} API`, main, guide: null, head })
}

/** Returns the page of a guide. `html` is its rendered text. */
export function guidePage(facts: PageFacts, { name, title }: Guide, html: string): string {
  const head = `<script type="module" src="${documentationPath}/files/${facts.versions.files}/guide.js"></script>`
  const main = `<article class="guide">${html}</article>`
  return frame(facts, { title: `${title} · ${facts.appName} API`, main, guide: name, head })
}
