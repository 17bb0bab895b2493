// Records bounces of sent e-mails and of campaigns. A bounce counts only if it names the Message-ID
// of an e-mail of this installation and a recipient of that e-mail. Other bounces may be forged.
import type { Schema } from '../../contract/types.ts'
import { defineJob } from '../../jobs/queue.ts'
import { type Context, now, systemContext } from '../../kernel/context.ts'
import { addressKey } from '../../kernel/values/format.ts'
import { changedKeys, derivedKeysOf } from '../../kernel/write/event-log.ts'
import { emitOnly, transaction } from '../../kernel/write/write.ts'
import { cutText } from '../../mail/cut-text.ts'
import type { Bounce, FailedRecipient } from '../../mail/parse/parse.ts'
import { bounceKind } from '../emails/bounces.ts'
import { changeEmail } from '../emails/change-email.ts'
import { hiddenRecipients, withoutHidden } from '../emails/refused-recipients.ts'
import { suppress } from './suppressions.ts'

const maxErrorLength = 2000

export const bounceJob = defineJob<Bounce>({
  ...bounceKind,
  run: ({ services }, bounce) =>
    transaction(systemContext(services, 'inbound_mail'), async (ctx) => {
      const bounced = [...(await recordAtEmail(ctx, bounce)), ...(await recordInLedger(ctx, bounce))]
      for (const { address } of bounced) await suppress(ctx, { address, reason: 'bounced' })
    }),
})

/** Stores the reason at the sent e-mail. Returns the recipients that the e-mail has. */
async function recordAtEmail(ctx: Context, { messageIds, recipients }: Bounce): Promise<FailedRecipient[]> {
  const mail = await ctx.db
    .selectFrom('emails')
    .select(['id', 'to', 'cc', 'bcc', 'error'])
    .where('message_id', 'in', messageIds)
    .where('source', '=', 'web')
    .where('status', '=', 'sent')
    .executeTakeFirst()
  if (!mail) return []
  const [to, cc, bcc] = [mail.to, mail.cc, mail.bcc].map((list) => JSON.parse(list) as string[])
  const sent = { to: to ?? [], cc: cc ?? [], bcc: bcc ?? [] }
  const known = new Set([...sent.to, ...sent.cc, ...sent.bcc].map(addressKey))
  const own = recipients.filter(({ address }) => known.has(addressKey(address)))
  const hidden = hiddenRecipients(sent)
  const sentences = own.map(({ address, reason }) => withoutHidden(`Bounced for ${address}: ${reason}`, hidden))
  // A mail server may report the same bounce again.
  const fresh = sentences.filter((sentence) => !mail.error?.includes(sentence))
  const error = cutText([...(mail.error === null ? [] : [mail.error]), ...fresh].join('; '), maxErrorLength)
  if (fresh.length > 0 && error !== mail.error) await setBounced(ctx, mail.id, error)
  return own
}

/** Gives an e-mail the status `bounced` and emits the follow-up event `email.bounced`. */
async function setBounced(ctx: Context, id: number, error: string): Promise<void> {
  let before: Schema<'Email'> | undefined
  const after = await changeEmail(
    ctx,
    id,
    { error },
    (mail) => {
      before = mail
    },
    async ({ db }) => {
      await db
        .updateTable('emails')
        .set({ error, bounced_at: now(ctx) })
        .where('id', '=', id)
        .execute()
    },
  )
  const changed = changedKeys({ ...before }, { ...after }, derivedKeysOf(ctx, 'emails'))
  await emitOnly(ctx, 'email.bounced', { entity: 'emails', id, before: { ...before }, shown: { ...after }, changed })
}

/** Marks the entry of a campaign as failed. Returns the recipient. */
async function recordInLedger(ctx: Context, { messageIds, recipients }: Bounce): Promise<FailedRecipient[]> {
  const entry = await ctx.db
    .selectFrom('campaign_sends')
    .select(['id', 'address'])
    .where('message_id', 'in', messageIds)
    .where('state', 'in', ['sent', 'uncertain'])
    .executeTakeFirst()
  const own = recipients.find(({ address }) => addressKey(address) === addressKey(entry?.address ?? ''))
  if (!entry || !own) return []
  await ctx.db
    .updateTable('campaign_sends')
    .set({ state: 'failed', error: `Bounced: ${own.reason}`, updated_at: now(ctx) })
    .where('id', '=', entry.id)
    .execute()
  return [own]
}
