// The signature headers of the Standard Webhooks specification. The signature covers id, time and
// body, so an attacker cannot send an old delivery as a new one.
import { createHmac } from 'node:crypto'

const prefix = 'whsec_'

interface Signed {
  /** The message id, which is the same for every attempt. */
  id: string
  /** The time of this attempt. */
  at: Date
  body: string
  /** The signing secrets, newest first. There are two for one day after a rotation. */
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
