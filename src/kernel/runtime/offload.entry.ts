// The program of a subprocess that offload.ts starts. The subprocess takes jobs from its parent
// process, one at a time. For each job it imports the module that does the job, and sends the
// result to the parent. The subprocess exits when the parent exits.

/**
 * A module that a subprocess can run. Its input and result are copied between the processes, so
 * they may contain data and bytes but no functions.
 */
export interface Runnable {
  run(input: never): unknown
}

export interface Job {
  module: string
  input: unknown
}

export type OffloadOutcome = { result: unknown } | { failure: string }

async function outcomeOf({ module, input }: Job): Promise<OffloadOutcome> {
  try {
    const { run } = (await import(module)) as { run(input: unknown): unknown }
    return { result: await run(input) }
  } catch (error) {
    return { failure: error instanceof Error ? `${error.stack}` : String(error) }
  }
}

process.on('message', (job: Job) => void outcomeOf(job).then((outcome) => process.send?.(outcome)))
process.on('disconnect', () => process.exit())
// Ignores termination signals. Terminals and supervisors send them to the whole process group, but
// only the parent decides when a job ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
