// Handler for the preview of an e-mail template with the values of a record.
import { canCall } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { clean, tooMuch } from '../../kernel/values/html.ts'
import { inSteps } from '../../kernel/write/idempotency.ts'
import { placeholdersOf, subjects } from './placeholder-values.ts'
import { fillIn, maxFilledLength } from './placeholders.ts'
import { emailTemplates } from './resource.ts'

const previewEmailTemplate: Handler<'previewEmailTemplate'> = inSteps(async (ctx, { params, body }) => {
  const template = await emailTemplates.get(ctx, params.id)
  const { entity_type: type, entity_id: id } = body
  const subject = subjects[type]
  // A record that the caller may not read causes the same error as a missing record.
  const isSeen = canCall(ctx, subject.getOperation) && (await subject.visibleIds(ctx, [id])).has(id)
  if (!isSeen) throw invalid({ entity_id: [`No ${subject.noun} has id ${id}.`] })
  const facts = await placeholdersOf(ctx, type, id)
  const head = fillIn(template.subject, facts, 'text', maxFilledLength.subject)
  const content = fillIn(template.content, facts, 'html', maxFilledLength.content)
  if (!head || !content) {
    const [part, most] = head ? ['content', maxFilledLength.content] : ['subject', maxFilledLength.subject]
    throw invalid({ entity_id: [`With its values, the ${part} has more than ${most} characters.`] })
  }
  // Sending sanitizes the body, so the preview does the same.
  const cleaned = clean(content.filled)
  if (cleaned === null) throw invalid({ entity_id: [tooMuch] })
  return {
    data: {
      subject: head.filled,
      content: cleaned,
      unknown_placeholders: [...new Set([...head.unknown, ...content.unknown])],
    },
  }
})

export const handlers = { previewEmailTemplate } satisfies Partial<Handlers>
