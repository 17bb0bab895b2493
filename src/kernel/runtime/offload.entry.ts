// The subprocess of offload.ts: takes one job after the other from its parent, imports the module
// that does it, and answers with the result. It ends when the parent does.

/**
 * A module that can be run here. Its input and result are copied between the processes: plain data
 * and bytes, no functions.
 */
export interface Runnable {
  run(input: never): unknown
}

export interface Job {
  module: string
  input: unknown
}

export type Outcome = { result: unknown } | { failure: string }

async function outcomeOf({ module, input }: Job): Promise<Outcome> {
  try {
    const { run } = (await import(module)) as { run(input: unknown): unknown }
    return { result: await run(input) }
  } catch (error) {
    return { failure: error instanceof Error ? `${error.stack}` : String(error) }
  }
}

process.on('message', (job: Job) => void outcomeOf(job).then((outcome) => process.send?.(outcome)))
process.on('disconnect', () => process.exit())
// Terminals and supervisors signal the whole process group, but only the parent decides when its
// jobs end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
