// The routes of the documentation pages and of the files that they load.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.ts'
import type { RouteFacts } from '../../contract/allowed-methods.ts'
import type { Published } from '../../installation/published-contract.ts'
import { guides, renderGuide } from './guides.ts'
import { documentationPath, guidePage, type PageFacts, referencePage } from './page.ts'
import { type OutlineTag, outlineOf, tagDocument } from './page-document.ts'
import { type PageFiles, pageFileNames, readPageFiles } from './page-files.ts'
import { wordIndex } from './search-index.ts'
import { discoveryLinks, sendTagged } from './send-document.ts'
import { compressedFile, encodingFor, type PageFile, pageFile } from './sent-file.ts'
import type { ServedDocument } from './served-document.ts'
import { swaggerFile, swaggerFileTypes, swaggerUiVersion } from './swagger-ui.ts'

// The scripts set styles through the DOM, which this policy allows, so `style-src` needs no
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
  const filesOfPage = (): PageFiles => {
    files ??= readPageFiles()
    return files
  }
  const pagesFor = (published: Published): Pages => {
    if (pages?.of !== published.etag) pages = { of: published.etag, made: new Pages(published, config, filesOfPage()) }
    return pages.made
  }

  const show = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    assertInstalled(request)
    const [whole = ''] = request.url.split('?')
    const path = whole.slice(whole.indexOf(documentationPath) + documentationPath.length + 1)
    reply.header('content-security-policy', contentSecurityPolicy)
    if (path === 'json' || path === 'yaml')
      return reply.header('cache-control', 'no-cache').redirect(`../openapi.${path}`)
    const rendered = await pagesFor(await contract(request)).at(path.replace(/\/$/, ''))
    if (rendered === null) return reply.callNotFound() as unknown as FastifyReply
    reply.header('cache-control', 'no-cache')
    // The contract does not declare an ETag for the reference page.
    if (path === '') return reply.header('link', discoveryLinks).type(rendered.type).send(rendered.text)
    return sendTagged(request, reply, { ...rendered, body: () => rendered.text })
  }
  http.get(documentationPath, show)
  http.get(`${documentationPath}/*`, show)
  registerFiles(http, filesOfPage)
}

/** Adds a route for each file of the pages. */
function registerFiles(http: FastifyInstance, filesOfPage: () => PageFiles): void {
  const options = { config: { isStaticFile: true } satisfies RouteFacts }
  for (const name of pageFileNames())
    http.get<{ Params: { version: string } }>(
      `${documentationPath}/files/:version/${name}`,
      options,
      async (request, reply) => {
        const { files, version } = filesOfPage()
        const file = files.get(name)
        if (!file) return reply.callNotFound() as unknown as FastifyReply
        return sendFile(request, reply, file, request.params.version === version)
      },
    )
  for (const name of Object.keys(swaggerFileTypes))
    http.get(`${documentationPath}/static/${name}`, options, async (request, reply) =>
      sendFile(request, reply, await swaggerFile(name), request.url.endsWith(`?v=${swaggerUiVersion()}`)),
    )
}

/** Sends a file. `isVersioned` tells whether the URL changes with the file. */
async function sendFile(
  request: FastifyRequest,
  reply: FastifyReply,
  file: PageFile,
  isVersioned: boolean,
): Promise<FastifyReply> {
  const encoding = encodingFor(request.headers['accept-encoding'])
  reply
    .header('content-security-policy', contentSecurityPolicy)
    .header('cache-control', isVersioned ? forAYear : 'no-cache')
    .header('vary', 'accept-encoding')
  const { type, etag, text } = file
  if (encoding === undefined) return sendTagged(request, reply, { type, etag, body: () => text })
  return sendTagged(request, reply, {
    type,
    etag,
    headers: { 'content-encoding': encoding },
    body: () => compressedFile(file, encoding),
  })
}
