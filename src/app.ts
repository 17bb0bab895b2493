// The composition root: creates all parts of a server and connects them. It opens no files, sockets
// or connections.
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import type { Store } from '../db/store.ts'
import { eventConsumers, jobs, schedules } from './background.ts'
import type { Config } from './config/config.ts'
import { statefulDomains } from './config/sign-in-hosts.ts'
import { createBackend } from './contract/backend.ts'
import { Problem } from './contract/output/problems.ts'
import { createReplyChecker } from './contract/output/reply-check.ts'
import { registerRoutes } from './contract/routes.ts'
import { type LogSink, logging, requestId, type TrackRequest, trackRequests } from './http/access-log.ts'
import type { CustomTypes } from './http/compat-v1/values.ts'
import { compressReplies } from './http/compression.ts'
import { limitConnections, sockets } from './http/connection-limits.ts'
import { registerDocs } from './http/docs/docs.ts'
import { type AnswerError, createErrorHandler, refuseUnknownPath } from './http/error-handler.ts'
import { registerHome } from './http/home/home.ts'
import { createPipeline } from './http/pipeline.ts'
import type { ReplyCheck } from './http/reply-sampling.ts'
import { registerRequestGuards } from './http/request-guards.ts'
import { minimalHeaders } from './http/security-headers.ts'
import { writtenFolders } from './installation/data-folder.ts'
import { knownBackups } from './installation/installation.ts'
import { openFiles } from './installation/open-files.ts'
import { type Published, servedWith } from './installation/published-contract.ts'
import { restoreLater } from './jobs/restores.ts'
import { createScheduler, type Scheduler } from './jobs/scheduler.ts'
import { createWorker, type Worker } from './jobs/worker.ts'
import { createEncryption } from './kernel/auth/encryption.ts'
import { memberOf } from './kernel/auth/ip-ranges.ts'
import { type Services, systemContext } from './kernel/context.ts'
import { createOutbound, type Outbound } from './kernel/outbound/client.ts'
import { checkSights } from './kernel/query/event-visibility.ts'
import { type Clock, sharedClock } from './kernel/runtime/clock.ts'
import { pacedFromNow } from './kernel/runtime/cooperative.ts'
import { createDisk, type Volume } from './kernel/runtime/disk-space.ts'
import { createMetrics, type Metrics } from './kernel/runtime/metrics.ts'
import { createOffload, type Offload } from './kernel/runtime/offload.ts'
import { createStoreMetrics } from './kernel/runtime/store-metrics.ts'
import { bestEffort } from './kernel/runtime/unavailable.ts'
import { createEmitter, type Emitter } from './kernel/write/events.ts'
import { createMailer, type Mailer } from './mail/outbound.ts'
import {
  deleteHooks,
  examiners,
  handlers,
  namedFinders,
  publicGuards,
  recordGuards,
  resources,
  searchIndex,
  sights,
} from './operations.ts'
import { committedAttributeSet, type EntityType } from './resources/attributes/attribute-set.ts'
import { fieldLabels } from './resources/attributes/field-labels.ts'
import { withCustomAttributes } from './resources/attributes/served-contract.ts'
import { endBulkWrites } from './resources/bulk/open-writes.ts'
import { textsFor } from './resources/configuration/language.ts'
import { endStreams } from './resources/events/streams.ts'
import { sweepFiles } from './resources/files/clean-up.ts'
import { moveUnseenLead } from './resources/leads/resource.ts'
import { withDeferredUpdates } from './resources/search/deferred-updates.ts'
import { eventAliases } from './resources/system/event-patterns.ts'
import { checkSearchAfterKill } from './resources/system/housekeeping.ts'
import { viewOfList } from './resources/views/sight.ts'
import { formsLacking } from './resources/web-forms/forms-missing-attribute.ts'
import { workflowsOf } from './resources/workflows/runs.ts'
import { createLanguages } from './texts/languages.ts'

/** The timeouts, in milliseconds, of requests to addresses that users have chosen. */
const outboundMs = { connect: 5_000, total: 15_000 }

export interface AppOptions {
  config: Config
  store: Store
  /** The key material of this installation (ACCORD_SECRET). */
  secret: string
  /** The contract from which this build was generated. */
  contract: object
  /** Returns the contract in the data folder; null before the installation. */
  published: () => Published | null
  clock?: Clock
  /** Whether the server listens on a socket. Only such a server sheds load. */
  serves?: boolean
  /** The listener modules of the deployment, in the configured order. */
  extensions?: readonly ((events: Emitter) => void)[]
  /** Replaces the mail transport in a test. All options after this one are for tests, too. */
  mailer?: Mailer
  outbound?: Outbound
  offload?: Offload
  volume?: Volume
  /** Receives the log lines instead of the standard output. */
  lines?: LogSink
  /**
   * Receives the findings when a reply breaks the contract. With this function, the caller gets the
   * reply instead of an error.
   */
  onBreach?: (findings: string[]) => void
}

export interface App {
  http: FastifyInstance
  services: Services
  /**
   * The worker and the scheduler are created but not started. A server starts both; a command
   * starts neither.
   */
  worker: Worker
  scheduler: Scheduler
  /**
   * Compiles all validators. Also repairs the search index if a rebuild of the index was killed.
   */
  warmUp(): Promise<void>
}

export async function buildApp(options: AppOptions): Promise<App> {
  const { config } = options
  checkSights(sights, options.contract)
  const metrics = createMetrics([createStoreMetrics(options.store)])
  const clock = options.clock ?? sharedClock(options.store)
  const answerError = createErrorHandler(config, clock)
  const http = createHttp(options, (error, request, reply) => {
    trackRequest(request, reply)
    reply.headers(minimalHeaders)
    answerError(error, request, reply)
  })
  const services = createServices(options, { http, metrics, clock, wake: () => worker.wake() })
  options.store.beforeGroupCommit(services.searchIndex.update)
  options.store.paceTransactions(pacedFromNow)
  const worker = createWorker(services, jobs, eventConsumers)
  const scheduler = createScheduler(services, schedules)
  for (const extend of options.extensions ?? []) extend(services.events)
  const rules = { recordGuards, publicGuards, examiners, namedFinders }
  const pipeline = createPipeline(services, handlers, rules, createReplyCheck(options, services))
  const backend = await createBackend(options.contract, pipeline, { zone: config.timezone, strict: config.strict })

  // The hooks run in the order of http/README.md, which is the order of these calls.
  const trackRequest: TrackRequest = trackRequests(http, metrics)
  limitConnections(http, config)
  await registerRequestGuards(http, services, options.serves ?? false)
  // Ends the event streams and bulk writes, which would otherwise go on until their clients end.
  http.addHook('preClose', async () => {
    endStreams(services)
    endBulkWrites(services)
  })
  // Closes the subprocesses after the last request, which may need one of them.
  http.addHook('onClose', () => services.offload.close())
  http.setErrorHandler((error: FastifyError | Problem, request, reply) => answerError(error, request, reply))
  await compressReplies(http)
  registerRoutes(http, backend)
  if (config.compatV1) {
    const { registerCompatV1 } = await import('./http/compat-v1/compat-v1.ts')
    await registerCompatV1(http, { backend, services, customTypes: () => customTypes(options.store) })
  }
  http.setNotFoundHandler(refuseUnknownPath)
  registerHome(http, config)
  await registerDocs(http, { config, services, published: options.published, served: servedContract(options) })
  const warmUp = async (): Promise<void> => {
    await backend.warmUp()
    await bestEffort(() => checkSearchAfterKill(systemContext(services, 'api')))
  }
  return { http, services, worker, scheduler, warmUp }
}

function createHttp({ config, lines }: AppOptions, frameworkErrors: AnswerError): FastifyInstance {
  const http = Fastify({
    ...logging(config, lines),
    ...sockets(config),
    bodyLimit: 1024 * 1024,
    trustProxy: config.trustedProxies.length > 0 ? memberOf(config.trustedProxies) : false,
    requestIdHeader: false,
    genReqId: (request) => requestId(request.headers['x-request-id']),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 16 * 1024 },
    frameworkErrors,
  })
  // contract/read-request.ts reads the body after authentication, so Fastify must not
  // parse it.
  http.removeAllContentTypeParsers()
  http.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  return http
}

interface Wiring {
  http: FastifyInstance
  metrics: Metrics
  clock: Clock
  wake: () => void
}

function createServices(options: AppOptions, { http, metrics, clock, wake }: Wiring): Services {
  const { config, store } = options
  const outboundLimits = { connectMs: outboundMs.connect, totalMs: outboundMs.total }
  return {
    config,
    store,
    searchIndex: withDeferredUpdates(searchIndex, clock),
    events: createEmitter(() => http.log, eventAliases),
    deleteHooks,
    resources,
    sights,
    files: openFiles(config, store.assertFiles),
    sweepFiles: async (ctx, sha256s) => void (await sweepFiles(ctx, sha256s)),
    contract: options.contract,
    clock,
    log: http.log,
    encryption: createEncryption(options.secret),
    statefulDomains: () => statefulDomains(config, portOf(http) ?? config.port),
    slices: { moveUnseenLead, formsLacking, restoreLater, viewOfList, knownBackups: () => knownBackups(config) },
    fieldLabels,
    workflowsOf,
    languages: createLanguages(config.dataDir),
    textsFor,
    metrics,
    disk: createDisk(writtenFolders(config), { clock, store, volume: options.volume }),
    mailer: metrics.counted(options.mailer ?? createMailer({ url: config.smtpUrl, domain: config.mailDomain })),
    offload: options.offload ?? createOffload(),
    outbound:
      options.outbound ??
      createOutbound({ allowCidrs: config.webhookAllowCidrs, allowHttp: config.webhookAllowHttp, ...outboundLimits }),
    jobs: new Map(jobs.map((job) => [job.kind, job])),
    wake,
    readiness: () => options.published()?.state ?? 'missing',
  }
}

function createReplyCheck({ config, contract, onBreach }: AppOptions, { log, metrics }: Services): ReplyCheck {
  const isProduction = config.env === 'production'
  return {
    checker: createReplyChecker(contract),
    share: isProduction ? 0.001 : 1,
    report(findings, call) {
      log.error({ findings, operation: call.operation, request_id: call.request.id }, 'A reply breaks the contract.')
      metrics.breached()
      if (onBreach) onBreach(findings)
      else if (!isProduction) throw new Problem('internal_error', 'The reply breaks the contract; the log says how.')
    },
  }
}

/** Returns the published contract with the custom attributes of this installation. */
const servedContract = ({ published, store }: AppOptions): ReturnType<typeof servedWith> =>
  servedWith(published, async () => {
    const set = await committedAttributeSet(store)
    return { revision: set.mark, to: (document) => withCustomAttributes(document, set) }
  })

/**
 * Returns a function that returns the types of an entity's custom attributes by code. Omits
 * subheadings, which have no value.
 */
async function customTypes(store: Store): Promise<CustomTypes> {
  const { own } = await committedAttributeSet(store)
  const known = new Map<string, ReadonlyMap<string, string>>()
  return (entity) => {
    const attributes = (own.get(entity as EntityType) ?? []).filter(({ type }) => type !== 'subheading')
    const types = known.get(entity) ?? new Map(attributes.map(({ code, type }) => [code, type]))
    known.set(entity, types)
    return types
  }
}

function portOf(http: FastifyInstance): number | undefined {
  const address = http.server.address()
  return typeof address === 'object' && address !== null ? address.port : undefined
}
