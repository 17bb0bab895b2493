// How a delivery proves where it comes from: the headers of Standard Webhooks. Their signature covers id, time and body, so that
// nobody can send an old delivery again as a new one.
import { createHmac } from 'node:crypto'

const prefix = 'whsec_'

interface Signed {
  /** The same for every try of a delivery. */
  id: string
  /** When this try was made. */
  at: Date
  body: string
  /** Newest first; while secrets are changed over, the one before as well. */
  secrets: readonly string[]
}

export function signatureHeaders({ id, at, body, secrets }: Signed): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const sign = (secret: string): string => {
    const key = Buffer.from(secret.startsWith(prefix) ? secret.slice(prefix.length) : secret, 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  }
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map(sign).join(' '),
  }
}
