// What can be done with templates beyond the everyday: a look at one filled in.
import { canCall } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { clean, tooMuch } from '../../kernel/values/html.ts'
import { inSteps } from '../../kernel/write/idempotency.ts'
import { factsOf, subjects } from './facts.ts'
import { fillIn, longest } from './placeholders.ts'
import { emailTemplates } from './resource.ts'

const previewEmailTemplate: Handler<'previewEmailTemplate'> = inSteps(async (ctx, { params, body }) => {
  const template = await emailTemplates.get(ctx, params.id)
  const { entity_type: type, entity_id: id } = body
  const subject = subjects[type]
  // A record the caller may not read is as if it were not there.
  const isSeen = canCall(ctx, subject.getOperation) && (await subject.visibleIds(ctx, [id])).has(id)
  if (!isSeen) throw invalid({ entity_id: [`No ${subject.noun} has id ${id}.`] })
  const facts = await factsOf(ctx, type, id)
  const head = fillIn(template.subject, facts, 'text', longest.subject)
  const content = fillIn(template.content, facts, 'html', longest.content)
  if (!head || !content) {
    const [part, most] = head ? ['content', longest.content] : ['subject', longest.subject]
    throw invalid({ entity_id: [`Filled in from it, the ${part} has more than ${most} characters.`] })
  }
  // As it would be sent: every body is cleaned on its way.
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
