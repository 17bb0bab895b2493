// Composition root: wires everything, listens to nothing. Read it top to bottom to know what a server is made of.
import { join } from 'node:path'
import Fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import type { StatementCheck } from '../db/compiled-queries.ts'
import type { Store } from '../db/store.ts'
import { jobs, readers, schedules } from './background.ts'
import { type Config, statefulDomains } from './config/config.ts'
import { createBackend } from './contract/backend.ts'
import { Problem } from './contract/output/problems.ts'
import { createReplyChecker } from './contract/output/reply-check.ts'
import { registerRoutes } from './contract/routes.ts'
import { type LogSink, logging, requestId, trackRequests, type Watch } from './http/access-log.ts'
import { compressReplies } from './http/compression.ts'
import { limitConnections, sockets } from './http/connection-limits.ts'
import { registerDocs } from './http/docs/docs.ts'
import { createErrorHandler } from './http/error-handler.ts'
import { createPipeline } from './http/pipeline.ts'
import { registerRequestGuards } from './http/request-guards.ts'
import { minimalHeaders } from './http/security-headers.ts'
import { writtenFolders } from './installation/data-folder.ts'
import { type Published, servedWith } from './installation/published-contract.ts'
import { createScheduler, type Scheduler } from './jobs/scheduler.ts'
import { createWorker, type Worker } from './jobs/worker.ts'
import { createEncryption } from './kernel/auth/encryption.ts'
import { memberOf } from './kernel/auth/ip-ranges.ts'
import { type Services, systemContext, type Verifier } from './kernel/context.ts'
import { diskFiles } from './kernel/files/file-store.ts'
import { createOutbound, type Outbound } from './kernel/outbound/client.ts'
import { checkSights } from './kernel/query/event-visibility.ts'
import { type Clock, systemClock } from './kernel/runtime/clock.ts'
import { createDisk, type Volume } from './kernel/runtime/disk-space.ts'
import { createMetrics } from './kernel/runtime/metrics.ts'
import { createOffload, type Offload } from './kernel/runtime/offload.ts'
import { bestEffort } from './kernel/runtime/unavailable.ts'
import { createEmitter, type Emitter } from './kernel/write/events.ts'
import { registerListeners, releases } from './listeners.ts'
import { createMailer, type Mailer } from './mail/outbound.ts'
import { examiners, gates, handlers, locators, resources, sights } from './operations.ts'
import { withOwnAttributes } from './resources/attributes/document.ts'
import { committedSet } from './resources/attributes/set.ts'
import { endStreams } from './resources/events/streams.ts'
import { sweepFiles } from './resources/files/clean.ts'
import { moveLeads } from './resources/leads/move-leads.ts'
import { checkSearchAfterKill } from './resources/system/housekeeping.ts'
import { formsLacking } from './resources/web-forms/forms-missing-attribute.ts'

/** How long an address that others have chosen may take (DOMAIN 18.5). */
const outboundMs = { connect: 5_000, total: 15_000 }

export interface AppOptions {
  config: Config
  store: Store
  /** Key material of this installation (ACCORD_SECRET). */
  secret: string
  /** The generated contract this build was made from. */
  contract: object
  /** What the data folder holds of it; null before installation. */
  published: () => Published | null
  clock?: Clock
  /** Whether it listens to strangers, so that it must turn away what is more than it can do. */
  serves?: boolean
  /** Modules of the deployment, in the order they are named. */
  extensions?: readonly ((events: Emitter) => void)[]
  /** What goes out, when a test looks on. */
  mailer?: Mailer
  outbound?: Outbound
  /** Replaces the drawing subprocesses, for a test that needs other limits. */
  offload?: Offload
  /** The file system, and what is logged, when a test looks on. */
  volume?: Volume
  lines?: LogSink
  /** Checks each use of a cached statement. */
  checkStatement?: StatementCheck
  /** Hears of every reply that breaks the contract, instead of its caller. */
  onBreach?: (findings: string[]) => void
  /** Self-checks of a test. */
  verifier?: Verifier
}

export interface App {
  http: FastifyInstance
  services: Services
  /** Neither is started: a server starts both, a command neither. */
  worker: Worker
  scheduler: Scheduler
  /** Compiles what requests would otherwise wait for, and has the leftovers of a killed rebuild looked at. */
  warmUp(): Promise<void>
}

export async function buildApp(options: AppOptions): Promise<App> {
  const { config, store } = options
  checkSights(sights, options.contract)
  const metrics = createMetrics()
  const clock = options.clock ?? systemClock
  const answerError = createErrorHandler(config, clock)
  const http = Fastify({
    ...logging(config, options.lines),
    ...sockets(config),
    bodyLimit: 1024 * 1024,
    trustProxy: config.trustedProxies.length > 0 ? memberOf(config.trustedProxies) : false,
    requestIdHeader: false,
    genReqId: (request) => requestId(request.headers['x-request-id']),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 16 * 1024 },
    frameworkErrors: (error, request, reply) => {
      watch(request, reply)
      reply.headers(minimalHeaders)
      answerError(error, request, reply)
    },
  })
  // Bodies are read by the contract's own rules, after authentication (DOMAIN 4.3).
  http.removeAllContentTypeParsers()
  http.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

  const services: Services = {
    config,
    store,
    events: createEmitter(() => http.log),
    releases,
    resources,
    sights,
    files: diskFiles(join(config.dataDir, 'files'), store.assertFiles),
    sweepFiles: async (ctx, sha256s) => void (await sweepFiles(ctx, sha256s)),
    contract: options.contract,
    clock,
    log: http.log,
    seal: createEncryption(options.secret),
    checkStatement: options.checkStatement,
    statefulDomains: () => statefulDomains(config, portOf(http) ?? config.port),
    moveLeads,
    formsLacking,
    metrics,
    disk: createDisk(writtenFolders(config), { clock, store, volume: options.volume }),
    mailer: metrics.counted(options.mailer ?? createMailer({ url: config.smtpUrl, domain: config.mailDomain })),
    offload: options.offload ?? createOffload(),
    outbound:
      options.outbound ??
      createOutbound({
        allowCidrs: config.webhookAllowCidrs,
        allowHttp: config.webhookAllowHttp,
        connectMs: outboundMs.connect,
        totalMs: outboundMs.total,
      }),
    jobs: new Map(jobs.map((job) => [job.kind, job])),
    wake: () => worker.wake(),
    readiness: () => options.published()?.state ?? 'missing',
    verifier: options.verifier,
  }
  const worker = createWorker(services, jobs, readers)
  const scheduler = createScheduler(services, schedules)
  registerListeners(services.events)
  for (const extend of options.extensions ?? []) extend(services.events)

  const { onBreach } = options
  const isProduction = config.env === 'production'
  const backend = await createBackend(
    options.contract,
    createPipeline(
      services,
      handlers,
      { locators, gates, examiners },
      {
        checker: createReplyChecker(options.contract),
        share: isProduction ? 0.001 : 1,
        report: (findings, call) => {
          http.log.error(
            { findings, operation: call.operation, request_id: call.request.id },
            'A reply breaks the contract.',
          )
          metrics.breached()
          if (onBreach) onBreach(findings)
          else if (!isProduction)
            throw new Problem('internal_error', 'The reply breaks the contract; the log says how.')
        },
      },
    ),
    { zone: config.timezone, strict: config.strict },
  )

  const watch: Watch = trackRequests(http, metrics)
  limitConnections(http, config)
  await registerRequestGuards(http, services, options.serves ?? false)
  // They would last as long as their readers want.
  http.addHook('preClose', async () => endStreams(services))
  // After the requests in progress, some of which may wait for it.
  http.addHook('onClose', () => services.offload.close())
  http.setErrorHandler((error: FastifyError | Problem, request, reply) => answerError(error, request, reply))
  await compressReplies(http)
  registerRoutes(http, backend)
  http.setNotFoundHandler(() => {
    throw new Problem('not_found', 'There is nothing at this path.')
  })
  const served = servedWith(options.published, async () => {
    const set = await committedSet(store)
    return { mark: set.mark, to: (document) => withOwnAttributes(document, set) }
  })
  await registerDocs(http, { config, services, published: options.published, served })
  const warmUp = async (): Promise<void> => {
    await backend.warmUp()
    await bestEffort(() => checkSearchAfterKill(systemContext(services, 'api')))
  }
  return { http, services, worker, scheduler, warmUp }
}

function portOf(http: FastifyInstance): number | undefined {
  const address = http.server.address()
  return typeof address === 'object' && address !== null ? address.port : undefined
}
