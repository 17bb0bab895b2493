// Parses the output of `strace -f -y -xx`: the writes, syncs and replies of a server in the order
// of their begins and ends.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

export interface Call {
  /** The calling thread. */
  thread: string
  name: string
  /** The path of the file descriptor, or the named path. */
  path: string
  /** The text between the parentheses. */
  text: string
  /** The return value, once the call has ended. */
  result?: number
}

interface Told {
  /** Called when a system call begins. Other calls may begin and end before it ends. */
  begun: (call: Call) => void
  ended: (call: Call) => void
}

const whole = /^(\d+) +(\w+)\((.*)\)\s+= (-?\d+)/
const beginning = /^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$/
const ending = /^(\d+) +<\.\.\. \w+ resumed>.*= (-?\d+)/

export async function eachCall(log: string, { begun, ended }: Told): Promise<void> {
  const open = new Map<string, Call>()
  const begin = (thread = '', name = '', text = ''): Call => {
    const call = { thread, name, text, path: pathIn(text) }
    begun(call)
    return call
  }
  for await (const line of createInterface({ input: createReadStream(log) })) {
    const all = whole.exec(line)
    if (all) {
      ended({ ...begin(all[1], all[2], all[3]), result: Number(all[4]) })
      continue
    }
    const first = beginning.exec(line)
    if (first) open.set(first[1] ?? '', begin(first[1], first[2], first[3]))
    const last = ending.exec(line)
    const call = last && open.get(last[1] ?? '')
    if (call) ended({ ...call, result: Number(last[2]) })
  }
}

function pathIn(text: string): string {
  const named = /^\d+<((?:\\x[0-9a-f]{2})*)>/.exec(text) ?? /"((?:\\x[0-9a-f]{2})*)"/.exec(text)
  return bytesOf(named?.[1] ?? '').toString()
}

/** Returns the bytes of all strings in the text, concatenated. */
export const bytesIn = (text: string): Buffer =>
  Buffer.concat([...text.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = '']) => bytesOf(hex)))

const bytesOf = (escaped: string): Buffer => Buffer.from(escaped.replaceAll('\\x', ''), 'hex')

/** Returns the offset of a `pwrite64`, or the length of an `ftruncate`. */
export const lastNumber = (text: string): number => Number(/(\d+)$/.exec(text)?.[1])
