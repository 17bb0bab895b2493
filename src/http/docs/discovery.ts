// Serves documents with which programs discover the API: the API catalog (RFC 9727), /llms.txt, a
// Markdown page for each operation, the AsyncAPI and the Arazzo document, and the Postman
// collection. Each is rendered from the served contract at its first request.
import { readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import type { Config } from '../../config/config.ts'
import { routeOf } from '../../contract/allowed-methods.ts'
import { operations } from '../../contract/operations.gen.ts'
import { Problem } from '../../contract/output/problems.ts'
import type { Published } from '../../installation/published-contract.ts'
import { toYamlInWorker } from '../../installation/yaml.ts'
import { byteTag } from '../../kernel/write/etag.ts'
import { baseUrlOf } from '../error-handler.ts'
import { asyncApiOf } from './asyncapi.ts'
import { llmsText, operationPage } from './markdown.ts'
import { postmanCollectionOf } from './postman.ts'
import { catalogPath, sendDocument } from './send-document.ts'
import type { ServedDocument } from './served-document.ts'

/** The maximum size of all rendered documents in memory, in bytes. */
const maxCachedBytes = 4 * 1024 * 1024

const linksetType = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

/**
 * Placeholders for the address of this server in cached documents. If the cache depended on the
 * `Host` header, a client could make the server render documents again and again. The brackets make
 * YAML quote the values.
 */
const marks = { baseUrl: '[base-url]', host: '[host]', protocol: '[protocol]' }

interface Rendered {
  text: string
  etag: string
}

export function registerDiscovery(
  http: FastifyInstance,
  { config, served }: { config: Config; served: (request: FastifyRequest) => Promise<Published> },
): void {
  const cache = new LRUCache<string, Rendered>({
    maxSize: maxCachedBytes,
    sizeCalculation: ({ text }) => text.length + 1,
  })

  // Clients request many pages in a row, so the parsed contract is cached. Only weakly, because it
  // needs ten times the memory of its text.
  let parsed: { etag: string; document: WeakRef<ServedDocument> } | undefined
  const parse = ({ etag, json }: Published): ServedDocument => {
    const known = parsed?.etag === etag ? parsed.document.deref() : undefined
    if (known) return known
    const document = JSON.parse(json.toString()) as ServedDocument
    parsed = { etag, document: new WeakRef(document) }
    return document
  }

  const rendered = async (
    contract: Published,
    name: string,
    render: (document: ServedDocument) => string | Promise<Buffer>,
  ): Promise<Rendered> => {
    const key = `${contract.etag} ${name}`
    const known = cache.get(key)
    if (known) return known
    const text = String(await render(parse(contract)))
    const fresh = { text, etag: byteTag(text) }
    cache.set(key, fresh)
    return fresh
  }

  const serve = (
    { path, ...fact }: (typeof operations)[keyof typeof operations],
    type: string,
    render: (document: ServedDocument, request: FastifyRequest) => string | Promise<Buffer>,
    nameOf: (request: FastifyRequest) => string = () => path,
  ): void => {
    http.get(routeOf({ path, ...fact }), async (request, reply) => {
      const contract = await served(request)
      const found = await rendered(contract, nameOf(request), (document) => render(document, request))
      const text = withBaseUrl(found.text, baseUrlOf(config, request))
      const etag = text === found.text ? found.etag : byteTag(text)
      return sendDocument(request, reply, { bytes: async () => Buffer.from(text), etag, type })
    })
  }

  const asyncApi = (document: ServedDocument): string => JSON.stringify(asyncApiOf(document, marks))
  serve(operations.getAsyncapiJson, 'application/json; charset=utf-8', asyncApi)
  serve(operations.getAsyncapiYaml, 'application/yaml; charset=utf-8', (document) => toYamlInWorker(asyncApi(document)))
  serve(operations.getArazzo, 'application/yaml; charset=utf-8', arazzo)
  serve(operations.getPostmanCollection, 'application/json; charset=utf-8', (document) =>
    JSON.stringify(postmanCollectionOf(document, marks)),
  )
  serve(operations.getApiCatalog, linksetType, () => JSON.stringify(catalogOf(marks.baseUrl)))
  serve(operations.getLlmsText, 'text/plain; charset=utf-8', llmsText)
  const idOf = ({ params }: FastifyRequest): string => (params as { operationId: string }).operationId
  serve(
    operations.getOperationMarkdown,
    'text/markdown; charset=utf-8',
    (document, request) => {
      const page = operationPage(document, idOf(request))
      if (page === null) throw new Problem('not_found', 'There is no operation of this name. /llms.txt lists all.')
      return page
    },
    idOf,
  )
}

/** Returns the Arazzo document, which refers to the contract of this server. */
const arazzo = (): string =>
  readFileSync(new URL('./arazzo.yaml', import.meta.url), 'utf8').replace(
    '../../contract/document.gen.json',
    `${marks.baseUrl}${operations.getOpenapiJson.path}`,
  )

/** Replaces the placeholders by the address of this server. */
function withBaseUrl(text: string, baseUrl: string): string {
  const { host, protocol } = new URL(baseUrl)
  return text
    .replaceAll(marks.baseUrl, baseUrl)
    .replaceAll(marks.host, host)
    .replaceAll(marks.protocol, protocol.slice(0, -1))
}

/** Returns the API catalog as a linkset (RFC 9264). */
function catalogOf(baseUrl: string): object {
  const link = (path: string, type: string): object => ({ href: `${baseUrl}${path}`, type })
  return {
    linkset: [
      {
        anchor: `${baseUrl}${catalogPath}`,
        item: [{ href: `${baseUrl}/api/admin` }],
      },
      {
        anchor: `${baseUrl}/api/admin`,
        'service-desc': [
          link(operations.getOpenapiJson.path, 'application/json'),
          link(operations.getOpenapiYaml.path, 'application/yaml'),
          link(operations.getAsyncapiJson.path, 'application/json'),
          link(operations.getArazzo.path, 'application/yaml'),
          link(operations.getPostmanCollection.path, 'application/json'),
        ],
        'service-doc': [
          link(operations.getDocumentation.path, 'text/html'),
          link(operations.getErrorCatalogue.path, 'text/html'),
          link(operations.getLlmsText.path, 'text/plain'),
        ],
        status: [link(operations.getHealth.path, 'application/json')],
      },
    ],
  }
}
