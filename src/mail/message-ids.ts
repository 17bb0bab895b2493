// Generates message ids for received e-mails whose own Message-ID is missing or taken.
import { createHash } from 'node:crypto'

/**
 * Returns the hash of `facts` as an id, so an e-mail that arrives twice gets the same id.
 */
export const generatedMessageId = (facts: readonly (string | null)[]): string =>
  `${createHash('sha256').update(JSON.stringify(facts)).digest('hex')}@inbound`

/**
 * Returns a generated message id that also depends on the files, so that e-mails with different
 * files get different ids. Returns an id of the sender unchanged.
 */
export function messageIdWithFiles(id: string, files: readonly { bytes: Uint8Array }[]): string {
  if (files.length === 0 || !/^[0-9a-f]{64}@inbound$/.test(id)) return id
  return generatedMessageId([id, ...files.map(({ bytes }) => createHash('sha256').update(bytes).digest('hex'))])
}
