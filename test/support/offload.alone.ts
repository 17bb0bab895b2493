// A program that runs one offloaded job. A test checks that its process then ends by itself.
import { createOffload, programAt } from '../../src/kernel/runtime/offload.ts'
import type * as Misbehaving from './misbehaving.entry.ts'

const program = programAt<typeof Misbehaving>(import.meta.url, './misbehaving.entry')
const { pid } = await createOffload({ idleMs: 600_000 }).run(program, { sleepMs: 0 }, 1)
process.stdout.write(`${pid}`)
