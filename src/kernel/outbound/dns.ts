// Names into addresses for calls to outside, as the system does it: with its hosts file and search domains. Such a look-up holds one
// of the four threads that passwords and files need as well, and cannot be called back, so few are made at once, and for a name one.
import { lookup as resolve } from 'node:dns/promises'
import { OutboundError } from './errors.ts'

/** All addresses of a name. */
export type Lookup = (hostname: string) => Promise<string[]>

interface Question {
  answer: Promise<string[]>
  start: () => void
  isStarted: boolean
  /** How many calls wait for it. */
  callers: number
}

const atOnce = 2

const addressesOf: Lookup = async (hostname) => (await resolve(hostname, { all: true })).map(({ address }) => address)

export function boundedLookup(lookup: Lookup = addressesOf): (host: string, signal: AbortSignal) => Promise<string[]> {
  const open = new Map<string, Question>()
  let busy = 0

  function startNext(): void {
    for (const question of open.values()) if (busy < atOnce && !question.isStarted) question.start()
  }

  function ask(host: string): Question {
    const question: Question = { answer: Promise.resolve([]), start: () => undefined, isStarted: false, callers: 0 }
    question.answer = new Promise((answer, fail) => {
      question.start = () => {
        question.isStarted = true
        busy++
        void lookup(host)
          .then(answer, fail)
          .finally(() => {
            busy--
            open.delete(host)
            startNext()
          })
      }
    })
    // When it fails, there may be nobody left to hear of it.
    question.answer.catch(() => undefined)
    open.set(host, question)
    startNext()
    return question
  }

  return async (host, signal) => {
    const question = open.get(host) ?? ask(host)
    question.callers++
    try {
      return await unless(signal, question.answer, host)
    } finally {
      question.callers--
      if (question.callers === 0 && !question.isStarted) open.delete(host)
    }
  }
}

/** What a name server answers, unless that takes too long. */
async function unless(signal: AbortSignal, answer: Promise<string[]>, host: string): Promise<string[]> {
  let stop = (): void => undefined
  const over = new Promise<never>((_, reject) => {
    stop = () => reject(new OutboundError('timeout', `${host} was not resolved in time.`))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([answer, over])
  } catch (cause) {
    if (cause instanceof OutboundError) throw cause
    throw new OutboundError('dns', `${host} was not found.`, { cause })
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
