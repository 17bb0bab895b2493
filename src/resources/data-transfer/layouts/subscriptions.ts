// Columns that say who gets no mailings. Every program has them, so they belong to no layout.
import type { ColumnRule } from '../columns.ts'

type Values = NonNullable<ColumnRule['values']>

const each = (words: string, to: string | null): Values =>
  Object.fromEntries(words.split('|').map((word) => [word, to]))

const rule = (values: Values): ColumnRule => ({ fields: ['subscribed'], fallback: true, values })

/**
 * An opt-out. Every value means it but those that deny it, because some programs write the time of
 * the unsubscription.
 */
const optOut = rule({
  ...each('0|false|no|nein|non|n|unchecked|subscribed|opt-in|opted-in|opted in|active|never|not unsubscribed', null),
  '*': 'false',
})
const optOutHeader =
  /\b(opt(ed)? out|optout|unsubscribed?|unsub|do not (e ?)?mail|no (e ?)?mails?|abgemeldet|abmeldung|desabonne|desinscrit|dado de baja|disiscritto)\b/

/** The status of a subscription, such as that of Mailchimp and Pipedrive. */
const status = rule({
  ...each('unsubscribed|opted out|opted_out|opt-out|cleaned|bounced|abgemeldet|archived|no consent', 'false'),
  ...each('subscribed|opted in|opted_in|opt-in', 'true'),
  '*': null,
})
const statusHeader =
  /^((person|contact|lead) )?((e ?mail )?(marketing|subscription|subscriber|newsletter)|e ?mail) status$/

/** Returns the rule for a header in the form of `normalizeHeader`, or undefined for others. */
export const subscriptionRule = (header: string): ColumnRule | undefined =>
  optOutHeader.test(header) ? optOut : statusHeader.test(header) ? status : undefined
