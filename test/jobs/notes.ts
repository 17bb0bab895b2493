// A job for the tests of the worker. It records its runs, and a test decides how they end.
import { beforeEach } from 'vitest'
import { defineJob, type JobRun, type RunAgain } from '../../src/jobs/queue.ts'
import { createWorker, type Worker } from '../../src/jobs/worker.ts'
import type { Context } from '../../src/kernel/context.ts'
import type { TestServer } from '../support/app.ts'
import { useNew } from '../support/using.ts'

interface Payload {
  name: string
}

/** The names of the runs so far. */
export const ran: string[] = []
/** The names and causes of the buried jobs. */
export const buried: string[] = []
/** `behave` is the work of each run. */
export const acting = {
  behave: async (_payload: Payload, _job: JobRun, _ctx: Context): Promise<RunAgain | undefined> => undefined,
}
const { behave } = acting

export const note = defineJob<Payload>({
  kind: 'test.note',
  concurrency: 3,
  retryAfterSeconds: [60, 300],
  run: async (ctx, payload, job) => {
    ran.push(payload.name)
    return acting.behave(payload, job, ctx)
  },
  onBuried: async (ctx, { name }, cause) => void ctx.unit?.onCommit.push(() => buried.push(`${name}: ${cause}`)),
})

/** Starts a worker for the job for each test. */
export function useNotes(server: TestServer): Worker {
  beforeEach(() => {
    ran.length = 0
    buried.length = 0
    acting.behave = behave
  })
  return useNew(() => createWorker(server.app.services, [note], []))
}
