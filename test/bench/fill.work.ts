// Inserts the dependents of leads: calls, e-mails and quotes, which the counts in a reply need.
import { addressOf, born, type Into, type Many } from './fill.insert.ts'

/**
 * Every second lead gets an activity, every fifth an e-mail, and every tenth a quote. With the
 * density `more`, each lead gets two activities and an e-mail.
 */
export function others(into: Into, many: Many) {
  const [activity, activityOf] = [into('activities'), into('lead_activities')]
  const [email, folder, reference] = [into('emails'), into('email_folders'), into('email_references')]
  const [quote, quoteOf] = [into('quotes'), into('lead_quotes')]
  const dense = many.density === 'more'
  return (index: number, { id, user, person, at }: { id: number; user: number; person: number; at: string }): void => {
    const activities = dense ? [2 * index + 1, 2 * index + 2] : index % 2 === 1 ? [(index + 1) / 2] : []
    for (const number of activities) {
      activity({
        type: 'call',
        title: `Call ${number}`,
        title_key: `call ${number}`,
        schedule_from: at,
        schedule_to: at,
        is_done: number % 2,
        user_id: user,
        ...born(at),
      })
      activityOf({ lead_id: id, activity_id: number })
    }
    const emails = dense ? [index + 1] : index % 5 === 4 ? [(index + 1) / 5] : []
    for (const number of emails) {
      const message = `bench-${number}@example.com`
      email({
        subject: `Offer ${number}`,
        subject_key: `offer ${number}`,
        html: '<p>As we said.</p>',
        text: 'As we said.',
        to: JSON.stringify([`person${person}@example.com`]),
        from: '["sales@example.com"]',
        from_name: 'Accord CRM',
        source: 'web',
        sender_type: 'user',
        status: 'sent',
        sent_at: at,
        is_read: 1,
        message_id: message,
        message_id_key: message,
        thread_id: number,
        lead_id: id,
        user_id: user,
        ...born(at),
      })
      folder({ email_id: number, folder: 'sent' })
      reference({ email_id: number, reference_id: message, position: 0 })
    }
    if (index % 10 === 9) {
      const number = (index + 1) / 10
      const subject = { subject: `Quote ${number}`, subject_key: `quote ${number}` }
      const terms = { billing_address: addressOf(number), expiry_date: '2026-12-01' }
      quote({ ...subject, person_id: person, user_id: user, ...terms, ...born(at) })
      quoteOf({ lead_id: id, quote_id: number })
    }
  }
}
