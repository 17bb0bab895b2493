// Verifies the signature of a webhook delivery (Standard Webhooks).
import { Webhook } from 'standardwebhooks'
import type { webhooks } from '../../src/contract/schema.gen.ts'

type BodyOf<Operation> = Operation extends { requestBody?: { content: { 'application/json': infer Body } } }
  ? Body
  : never

/** The members of a union that are records of a schema, and not objects of any keys. */
type Described<Entity> = Entity extends object ? (string extends keyof Entity ? never : Entity) : never

/**
 * The record of a message. The contract also allows an object of any keys, because a webhook of a
 * user with limited permissions sends no counts. A union with that object has no typed keys.
 */
type EntityOf<Entity> = [Described<Entity>] extends [never] ? Entity : Described<Entity> | Exclude<Entity, object>

type MessageOf<Name, Body> = Body extends { data: { after: infer Entity } }
  ? Omit<Body, 'type' | 'data'> & {
      type: Name
      data: Omit<Body['data'], 'before' | 'after'> & { before: EntityOf<Entity>; after: EntityOf<Entity> }
    }
  : never

/**
 * The default body of a delivery, for any event or for one event such as
 * `WebhookEvent<'lead.create.after'>`. `type` decides the type of `data.before` and `data.after`. A
 * webhook of a user with limited permissions sends no `…_count`. A webhook with its own payload
 * template sends a different body.
 */
export type WebhookEvent<Name extends keyof webhooks = keyof webhooks> = {
  [Each in Name]: MessageOf<Each, BodyOf<webhooks[Each]['post']>>
}[Name]

/**
 * A delivery that is not signed with the secret, or is too old. The class is our own, because the
 * declarations of `standardwebhooks` need those of Node.
 */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
}

/**
 * Returns the event of a delivery. Throws WebhookVerificationError when the signature is wrong, or
 * when the delivery is more than five minutes old. `body` must be the raw request body, because a
 * parsed and serialized body may differ from the signed text. `secret` is the `whsec_…` of the
 * webhook.
 */
export function verifyWebhook(
  { body, headers }: { body: string; headers: Headers | Record<string, string | string[] | undefined> },
  secret: string,
): WebhookEvent {
  const read = (name: string): string => String((headers instanceof Headers ? headers.get(name) : headers[name]) ?? '')
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
  const signed = Object.fromEntries(names.map((name) => [name, read(name)]))
  // Throws another error for a missing or unreadable secret: the delivery is not to blame.
  const webhook = new Webhook(secret)
  try {
    return webhook.verify(body, signed) as WebhookEvent
  } catch (cause) {
    throw new WebhookVerificationError(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}
