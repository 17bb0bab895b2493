// The routes of the documentation pages and of the files that they load.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.ts'
import type { Published } from '../../installation/published-contract.ts'
import { guides, renderGuide } from './guides.ts'
import { documentationPath, guidePage, type PageFacts, referencePage } from './page.ts'
import { type OutlineTag, outlineOf, tagDocument } from './page-document.ts'
import { type PageFile, type PageFiles, pageFile, readPageFiles, swaggerUiVersion } from './page-files.ts'
import { wordIndex } from './search-index.ts'
import { discoveryLinks, sendTagged } from './send-document.ts'
import type { ServedDocument } from './served-document.ts'
import { swaggerFiles } from './swagger-ui.ts'

// Swagger UI sets its styles through the DOM, which this policy allows, so `style-src` needs no
// 'unsafe-inline'.
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The value of Cache-Control for a URL that contains the version of its file. */
const forAYear = 'public, max-age=31536000, immutable'

interface PageSource {
  config: Config
  /** Returns the contract to show. Throws 404 before the installation. */
  contract: (request: FastifyRequest) => Promise<Published>
  assertInstalled: (request: FastifyRequest) => void
}

const html = (text: string): PageFile => pageFile('text/html; charset=utf-8', text)
const json = (value: object): PageFile => pageFile('application/json; charset=utf-8', JSON.stringify(value))

/** The pages of one version of the contract. Each page is rendered at its first request. */
class Pages {
  readonly #contract: ServedDocument
  readonly #facts: PageFacts
  readonly #made = new Map<string, PageFile | null>()

  constructor({ json }: Published, { appName }: Config, { version }: PageFiles) {
    this.#contract = JSON.parse(json.toString()) as ServedDocument
    this.#facts = {
      appName,
      apiVersion: this.#contract.info.version,
      outline: outlineOf(this.#contract),
      versions: { files: version, swaggerUi: swaggerUiVersion() },
    }
  }

  /** Returns the page or document at a path below `documentationPath`, or null. */
  async at(path: string): Promise<PageFile | null> {
    const known = this.#made.get(path)
    if (known !== undefined) return known
    const made = await this.#make(path)
    if (made !== null) this.#made.set(path, made)
    return made
  }

  async #make(path: string): Promise<PageFile | null> {
    if (path === '') return html(referencePage(this.#facts))
    if (path === 'outline.json') return json({ tags: this.#facts.outline, guides, version: this.#facts.apiVersion })
    if (path === 'search.json') return json(wordIndex(this.#contract))
    // Headers of replies link to `changes`, so its address is short.
    const guide = guides.find(({ name }) => path === `guides/${name}` || (path === name && name === 'changes'))
    if (guide) return html(guidePage(this.#facts, guide, await renderGuide(guide, this.#contract)))
    const tag = this.#facts.outline.find(({ slug }: OutlineTag) => path === `tags/${slug}.json`)
    return tag ? json(tagDocument(this.#contract, tag)) : null
  }
}

export function registerPages(http: FastifyInstance, { config, contract, assertInstalled }: PageSource): void {
  let files: PageFiles | undefined
  let pages: { of: string; made: Pages } | undefined
  const pagesFor = (published: Published): Pages => {
    files ??= readPageFiles()
    if (pages?.of !== published.etag) pages = { of: published.etag, made: new Pages(published, config, files) }
    return pages.made
  }
  let ui: Promise<FastifyInstance> | undefined
  const swagger = (): Promise<FastifyInstance> => {
    ui ??= swaggerFiles().catch((cause: unknown) => {
      ui = undefined
      throw cause
    })
    return ui
  }
  http.addHook('onClose', async () => void (await (await ui?.catch(() => undefined))?.close()))

  const show = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    assertInstalled(request)
    const [whole = ''] = request.url.split('?')
    const path = whole.slice(whole.indexOf(documentationPath) + documentationPath.length + 1)
    reply.header('content-security-policy', contentSecurityPolicy)
    if (path === 'json' || path === 'yaml')
      return reply.header('cache-control', 'no-cache').redirect(`../openapi.${path}`)
    if (path.startsWith('static/')) return relay(await swagger(), request, reply)
    // The page waits until Swagger UI is loaded, which blocks the event loop. If the page were sent
    // before, load shedding would refuse its files.
    const [published] = await Promise.all([contract(request), swagger()])
    const current = pagesFor(published)
    const [, version, name] = /^files\/([\w-]+)\/([\w.-]+)$/.exec(path) ?? []
    const file = name === undefined ? undefined : files?.files.get(name)
    if (file) {
      reply.header('cache-control', version === files?.version ? forAYear : 'no-cache')
      return sendTagged(request, reply, { ...file, body: () => file.text })
    }
    const rendered = await current.at(path.replace(/\/$/, ''))
    if (rendered === null) return reply.callNotFound() as unknown as FastifyReply
    reply.header('cache-control', 'no-cache')
    // The contract does not declare an ETag for the reference page.
    if (path === '') return reply.header('link', discoveryLinks).type(rendered.type).send(rendered.text)
    return sendTagged(request, reply, { ...rendered, body: () => rendered.text })
  }
  http.get(documentationPath, show)
  http.get(`${documentationPath}/*`, show)
}

/** The request headers that are passed to Swagger UI. Static files need no others. */
const conditional = new Set(['if-none-match', 'if-modified-since'])
/**
 * Response headers of Swagger UI that are not copied, because the outer server sets its own.
 * Without Accept-Ranges, it also compresses the file.
 */
const notCopied = new Set([
  'accept-ranges',
  'cache-control',
  'connection',
  'content-length',
  'content-security-policy',
  'date',
  'keep-alive',
  'transfer-encoding',
])

async function relay(ui: FastifyInstance, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const sent = Object.entries(request.raw.headers).filter(([name]) => conditional.has(name))
  const answer = await ui.inject({ method: 'GET', url: request.url, headers: Object.fromEntries(sent) })
  if (answer.statusCode >= 500) throw new Error(`The page answered ${answer.statusCode}: ${answer.body}`)
  if (answer.statusCode >= 400) return reply.callNotFound() as unknown as FastifyReply
  for (const [name, value] of Object.entries(answer.headers))
    if (value !== undefined && !notCopied.has(name)) reply.header(name, value)
  const isVersioned = request.url.endsWith(`?v=${swaggerUiVersion()}`)
  return reply
    .header('cache-control', isVersioned ? forAYear : 'no-cache')
    .code(answer.statusCode)
    .send(answer.rawPayload)
}
