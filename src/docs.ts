// The manual of the API: Swagger UI, the catalogue of problem codes, and the contract itself as JSON and YAML, all from
// what `accord install` and `accord regenerate` published. Nothing on these pages comes from another host (DOMAIN 26).
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from './config.ts'
import { didYouMean, type Finding } from './contract/findings.ts'
import { booleans } from './contract/normalise.ts'
import { type FieldErrors, Problem } from './contract/problems.ts'
import { readQuery } from './contract/query.ts'
import { errorCatalogue } from './docs/catalogue.ts'
import { page, swaggerPages } from './docs/swagger.ts'
import { matches } from './kernel/etag.ts'
import type { Published } from './published.ts'

const base = '/api/admin'

/** The page's own copies of the contract. */
const copies = /\/documentation\/(json|yaml)\/?(?:\?|$)/

interface Options {
  config: Config
  published: () => Published | null
  /** The published contract with this installation's attributes. */
  served: () => Promise<Published | null>
}

export async function registerDocs(http: FastifyInstance, { config, published, served }: Options): Promise<void> {
  /** The published contract as it is now: `accord regenerate` shows on the next reload. */
  const installed = (request: FastifyRequest): Published => {
    const found = published()
    if (found) return found
    request.log.warn({ data: config.dataDir }, 'There is no published contract in the data folder. Run: accord install')
    throw new Problem('not_found', 'This server is not installed yet. Run `accord install`, then reload this page.')
  }

  const asked = async (request: FastifyRequest): Promise<Published> =>
    isCustom(request, config) ? ((await served()) ?? installed(request)) : installed(request)

  http.get(`${base}/openapi.json`, async (request, reply) => {
    const { json, etag } = await asked(request)
    return sendDocument(request, reply, { bytes: async () => json, etag, type: 'application/json' })
  })
  http.get(`${base}/openapi.yaml`, async (request, reply) => {
    const { yaml, etag } = await asked(request)
    return sendDocument(request, reply, { bytes: yaml, etag: etag.replace(/"$/, '-yaml"'), type: 'application/yaml' })
  })
  http.get(`${page}/errors`, (request, reply) => {
    installed(request)
    const { html, headers } = errorCatalogue(config)
    return reply.headers(headers).type('text/html; charset=utf-8').send(html)
  })

  let ui: Promise<FastifyInstance> | undefined
  const show = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    installed(request)
    // The document has one address with an ETag; the page's own copies lead there.
    const copy = copies.exec(request.url)
    if (copy) return reply.header('cache-control', 'no-cache').redirect(`../openapi.${copy[1]}`)
    ui ??= swaggerPages(config).catch((cause: unknown) => {
      ui = undefined
      throw cause
    })
    return relay(await ui, request, reply)
  }
  http.get(page, show)
  http.get(`${page}/*`, show)
  http.addHook('onClose', async () => void (await (await ui?.catch(() => undefined))?.close()))
}

/** What a file is asked for with; nothing else of a request matters to it. */
const conditional = new Set(['if-none-match', 'if-modified-since'])
/** What the server proper says of each answer itself. */
const ofTransport = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])

async function relay(ui: FastifyInstance, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const sent = Object.entries(request.raw.headers).filter(([name]) => conditional.has(name))
  const answer = await ui.inject({ method: 'GET', url: request.url, headers: Object.fromEntries(sent) })
  if (answer.statusCode >= 500) throw new Error(`The page answered ${answer.statusCode}: ${answer.body}`)
  if (answer.statusCode >= 400) return reply.callNotFound() as unknown as FastifyReply
  for (const [name, value] of Object.entries(answer.headers))
    if (value !== undefined && !ofTransport.has(name)) reply.header(name, value)
  return reply.code(answer.statusCode).send(answer.rawPayload)
}

interface Document {
  bytes: () => Promise<Buffer>
  etag: string
  type: string
}

async function sendDocument(
  request: FastifyRequest,
  reply: FastifyReply,
  { bytes, etag, type }: Document,
): Promise<FastifyReply> {
  reply.headers({ etag, 'cache-control': 'no-cache' })
  const known = request.headers['if-none-match']
  if (known !== undefined && matches(known, etag)) return reply.code(304).send()
  return reply.type(`${type}; charset=utf-8`).send(await bytes())
}

/** Whether the contract is wanted with this installation's attributes. Throws 422 for neither yes nor no, and for other words. */
function isCustom({ url }: FastifyRequest, { strict, timezone: zone }: Config): boolean {
  const [, raw = ''] = url.split(/\?(.*)/s)
  const found: Finding[] = []
  const { custom = 'true', ...others } = readQuery(raw, { custom: { type: 'boolean' } }, { zone, strict }, found)
  const errors: FieldErrors = Object.fromEntries(found.map(([name, sentence]) => [name, [sentence]]))
  for (const name of Object.keys(others))
    errors[`query.${name.slice(0, 100)}`] = [`Unknown parameter.${didYouMean(name, ['custom'])}`]
  const wanted = booleans.get(custom)
  if (wanted === undefined) errors['query.custom'] = ['Must be true or false.']
  if (wanted === undefined || Object.keys(errors).length > 0)
    throw new Problem('validation_failed', undefined, { errors })
  return wanted
}
