// Serves the documentation pages, the page of problem codes, and the contract as JSON and YAML. The
// contract is the one that `accord install` or `accord regenerate` published. The pages load no
// files from other hosts.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.ts'
import { booleans } from '../../contract/input/normalize.ts'
import { readQuery } from '../../contract/input/query.ts'
import { didYouMean, type Finding } from '../../contract/input/validation-errors.ts'
import { type AnyOperationId, operations } from '../../contract/operations.gen.ts'
import { type FieldErrors, Problem } from '../../contract/output/problems.ts'
import type { Published } from '../../installation/published-contract.ts'
import { toYamlInWorker } from '../../installation/yaml.ts'
import { type Caller, identify } from '../../kernel/auth/sessions.ts'
import { canCall, type Services } from '../../kernel/context.ts'
import { byteTag } from '../../kernel/write/etag.ts'
import { registerDiscovery } from './discovery.ts'
import { documentationPath } from './page.ts'
import { registerPages } from './page-routes.ts'
import { errorCatalogue } from './problem-catalogue.ts'
import { discoveryLinks, sendDocument } from './send-document.ts'

const base = '/api/admin'

interface Options {
  config: Config
  services: Services
  published: () => Published | null
  /** Returns the published contract with the custom attributes of this installation. */
  served: () => Promise<Published | null>
}

export async function registerDocs(
  http: FastifyInstance,
  { config, published, served, services }: Options,
): Promise<void> {
  /**
   * Returns the published contract, or throws 404 before the installation. Called by each request,
   * so that a reload shows the result of `accord regenerate`.
   */
  const installed = (request: FastifyRequest): Published => {
    const found = published()
    if (found) return found
    request.log.warn({ data: config.dataDir }, 'There is no published contract in the data folder. Run: accord install')
    throw new Problem('not_found', 'This server is not installed yet. Run `accord install`, then reload this page.')
  }

  const asked = async (request: FastifyRequest): Promise<Published & { isOwn: boolean }> => {
    const { custom, mine } = wishes(request, config)
    const found = custom ? ((await served()) ?? installed(request)) : installed(request)
    if (!mine) return { ...found, isOwn: false }
    const { headers } = request.raw
    const requestOrigin = `${request.protocol.toLowerCase()}://${request.host}`
    const caller = await identify(services, { headers, ip: request.address, requestOrigin }, false)
    return { ...narrowed(found, caller), isOwn: true }
  }

  http.get(`${base}/openapi.json`, async (request, reply) => {
    const { json, etag, isOwn } = await asked(request)
    return sendDocument(request, reply, {
      bytes: async () => json,
      etag,
      isOwn,
      type: 'application/json; charset=utf-8',
    })
  })
  http.get(`${base}/openapi.yaml`, async (request, reply) => {
    const { yaml, etag, isOwn } = await asked(request)
    const tag = etag.replace(/"$/, '-yaml"')
    return sendDocument(request, reply, { bytes: yaml, etag: tag, isOwn, type: 'application/yaml; charset=utf-8' })
  })
  http.get(`${documentationPath}/errors`, (request, reply) => {
    installed(request)
    const { html, headers } = errorCatalogue(config)
    return reply
      .headers({ ...headers, link: discoveryLinks })
      .type('text/html; charset=utf-8')
      .send(html)
  })

  registerDiscovery(http, { config, served: async (request) => (await served()) ?? installed(request) })
  registerPages(http, {
    config,
    contract: async (request) => (await served()) ?? installed(request),
    assertInstalled: installed,
  })
}

/** Returns the contract with only the operations that the caller may use. */
function narrowed(found: Published, caller: Caller): Published {
  const document = JSON.parse(found.json.toString()) as {
    paths: Record<string, Record<string, { operationId: string }>>
  }
  const mayUse = ({ operationId }: { operationId: string }): boolean =>
    canCall(caller, operations[operationId as AnyOperationId])
  const paths = Object.entries(document.paths).map(
    ([path, item]) => [path, Object.fromEntries(Object.entries(item).filter(([, each]) => mayUse(each)))] as const,
  )
  const kept = paths.filter(([, item]) => Object.keys(item).length > 0)
  const json = JSON.stringify({ ...document, paths: Object.fromEntries(kept) })
  return { ...found, json: Buffer.from(json), etag: byteTag(json), yaml: () => toYamlInWorker(json) }
}

/** Reads the query parameters `custom` and `mine`. Throws 422 for an unknown parameter or value. */
function wishes(
  { url }: FastifyRequest,
  { strict, timezone: zone }: Config,
): Record<'custom' | 'mine', boolean | undefined> {
  const [, raw = ''] = url.split(/\?(.*)/s)
  const found: Finding[] = []
  const shapes = { custom: { type: 'boolean' }, mine: { type: 'boolean' } }
  const { custom = 'true', mine = 'false', ...others } = readQuery(raw, shapes, { zone, strict }, found)
  const errors: FieldErrors = Object.fromEntries(found.map(([name, sentence]) => [name, [sentence]]))
  for (const name of Object.keys(others))
    errors[`query.${name.slice(0, 100)}`] = [`Unknown parameter.${didYouMean(name, Object.keys(shapes))}`]
  const wanted = { custom: booleans.get(custom), mine: booleans.get(mine) }
  for (const [name, each] of Object.entries(wanted))
    if (each === undefined) errors[`query.${name}`] = ['Must be true or false.']
  if (Object.keys(errors).length > 0) throw new Problem('validation_failed', undefined, { errors })
  return wanted
}
