// Changes a record without losing the change of another client (If-Match).
import { AccordProblem } from './problem.ts'

/** The result of a call of the client. */
export interface ReadReply<Data> {
  data?: Data
  error?: unknown
  response: Response
}

const maxTries = 5

/**
 * Reads a record, lets `save` change it, and begins again when another client has changed it in the
 * meantime. `save` gets the record and its ETag, and must send the ETag as `If-Match`. Returns the
 * reply of `save`. Throws AccordProblem for an error other than 412, and for the fifth 412.
 */
export async function updateIfUnchanged<Current, Saved>(
  read: () => Promise<ReadReply<Current>>,
  save: (current: Current, etag: string) => Promise<ReadReply<Saved>>,
): Promise<Saved> {
  for (let tries = 1; ; tries++) {
    const { data, error, response } = await read()
    if (!response.ok) throw new AccordProblem(response, error)
    const saved = await save(data as Current, response.headers.get('etag') ?? '')
    if (saved.response.ok) return saved.data as Saved
    if (saved.response.status !== 412 || tries === maxTries) throw new AccordProblem(saved.response, saved.error)
  }
}
