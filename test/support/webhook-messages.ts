// Messages for a receiver of webhooks: genuine ones, and those that anyone can send.
import { Webhook } from 'standardwebhooks'

export const webhookSecret = `whsec_${Buffer.from('a secret of 24 bytes....').toString('base64')}`

type Headers = Record<string, string>

/** Signs a message like the server. Returns the headers in the form that receivers read. */
function signed(body: string, at: Date, id = 'msg_1'): Headers {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(webhookSecret).sign(id, at, body),
  }
}

/** Returns the headers of genuine and of other messages with the same body. */
export function webhookMessages(): { good: Headers[]; bad: Headers[]; body: string } {
  const body = '{"type":"lead.create.after","data":{"name":"Ünïcode"}}'
  const now = new Date()
  const one = signed(body, now)
  const { 'webhook-signature': signature = '' } = one
  const far = [-600_000, 600_000].map((away) => signed(body, new Date(now.getTime() + away)))
  const many = Array(1_000).fill('v1,AAAA').join(' ')
  const good = [
    one,
    // For a day after a rotation of the secret, messages have two signatures.
    { ...one, 'webhook-signature': `v1,AAAA ${signature}` },
    { ...one, 'webhook-signature': `${many} ${signature}` },
  ]
  const bad = [
    ...far,
    ...Object.keys(one).flatMap((name) => [
      Object.fromEntries(Object.entries(one).filter(([key]) => key !== name)),
      { ...one, [name]: '' },
    ]),
    {},
    ...timestamps.map((time) => ({ ...one, 'webhook-timestamp': time })),
    ...signatures.map((each) => ({ ...one, 'webhook-signature': each })),
    { ...one, 'webhook-signature': many },
    { ...one, 'webhook-signature': signature.slice(0, -1) },
    { ...one, 'webhook-signature': signature.replace('v1,', 'v2,') },
    { ...one, 'webhook-id': 'msg_2' },
    { ...one, 'webhook-id': 'é\ud800' },
  ]
  return { good, bad, body }
}

const timestamps = ['soon', 'NaN', 'Infinity', '-1', '0', '9'.repeat(5000), '١٢٣', '\ud800']

/** The second has as many characters as a genuine one, and more bytes. */
const signatures = ['v1,ü', 'é'.repeat(47), 'é'.repeat(22), '\ud800'.repeat(47), ' ', ',', 'v1', 'v1,']
