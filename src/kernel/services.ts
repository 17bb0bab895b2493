// Lists what a context holds of the rooms of the kernel and of the parts of a server. context.ts
// knows none of these types, because their functions take a context.
import type { SearchIndex } from '../../db/search/search-index.ts'
import type { Store } from '../../db/store.ts'
import type { Config } from '../config/config.ts'
import type { Mailer } from '../mail/mailer.ts'
import type { Languages } from '../texts/languages.ts'
import type { Texts } from '../texts/texts.ts'
import type { Encryption } from './auth/encryption.ts'
import type { FileStore } from './files/file-store.ts'
import type { Uploads } from './files/multipart.ts'
import type { Sent } from './handler.ts'
import type { DeleteHooks } from './history/delete-hooks.ts'
import type { Outbound } from './outbound/client.ts'
import type { Sight } from './query/event-visibility.ts'
import type { Resource } from './resource/definition.ts'
import type { Disk } from './runtime/disk-space.ts'
import type { Metrics } from './runtime/metrics.ts'
import type { Offload } from './runtime/offload.ts'
import type { Emitter } from './write/events.ts'
import type { KeyedRequest } from './write/idempotency.ts'
import type { UnitOfWork } from './write/write.ts'

declare module './context.ts' {
  interface Services {
    config: Config
    store: Store
    searchIndex: SearchIndex
    events: Emitter
    /** The functions that run before a record of an entity is deleted. */
    deleteHooks: DeleteHooks
    /** All resources by entity (`leads`, `persons` …). */
    resources: ReadonlyMap<string, Resource<unknown, never>>
    /** The visibility rule for the events of each entity. */
    sights: ReadonlyMap<string, Sight>
    /** Stores the bytes of uploaded files. */
    files: FileStore
    /** Removes the stored bytes with these hashes unless a file row refers to them. */
    sweepFiles: (ctx: Context, sha256s: readonly string[]) => Promise<void>
    /** The OpenAPI document of this program version. */
    contract: object
    clock: { now(): Date }
    log: Log
    encryption: Encryption
    statefulDomains: () => readonly string[]
    /** The counters of `/metrics`. */
    metrics: Metrics
    /** Reports whether the disks have free space. */
    disk: Disk
    slices: SliceFunctions
    /** Returns the display names of an entity's fields, by attribute code. */
    fieldLabels: (ctx: Context, entity: string) => Promise<ReadonlyMap<string, string>>
    /** Returns the workflows of runs, by the id of the run. */
    workflowsOf: (ctx: Context, runIds: readonly number[]) => Promise<ReadonlyMap<number, { id: number; name: string }>>
    languages: Languages
    /** Returns the texts of the first language that has some, or else of the installation. */
    textsFor: (ctx: Context, ...wanted: readonly (string | null | undefined)[]) => Promise<Texts>
    mailer: Mailer
    /** Runs CPU-bound work in subprocesses, so that it does not block the event loop. */
    offload: Offload
    /** Sends requests to URLs that users entered. */
    outbound: Outbound
    /**
     * The `JobHooks` by kind of job. app.ts supplies them, because the slice that retries jobs may
     * not import the slices that define jobs.
     */
    jobs: ReadonlyMap<string, JobHooks>
    /** Notifies the worker of this process that a job may be due. */
    wake: () => void
    /** Returns whether the published contract file exists and matches this program version. */
    readiness: () => 'ok' | 'missing' | 'outdated'
  }

  interface Context {
    readonly unit: UnitOfWork | null
    readonly uploads?: Uploads
    /** The body of an operation whose body consists of lines. */
    readonly sent?: Sent
    /**
     * The stored progress of a request with an Idempotency-Key. Set only for handlers that open
     * their own transactions (write/idempotency.ts).
     */
    readonly keyed: KeyedRequest | null
  }
}
