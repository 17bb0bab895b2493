// Fills in the placeholders of templates. `{%leads.title%}` becomes the readable text
// of a field of the record, or of its person, user or organization. Unknown placeholders stay in
// the text and are reported.
import { escapeHtml } from '../../kernel/values/format.ts'

export type Placeholders = ReadonlyMap<string, string>
export type EscapeMode = 'text' | 'html' | 'json' | 'url'

const pattern = /\{%\s*([a-z_]+(?:\.[a-z0-9_]+)?)\s*%\}/g
/**
 * Placeholders that campaigns fill in when sending, so `fillIn` does not report them as unknown.
 */
const filledByCampaigns = new Set(['unsubscribe_url'])

/** Escapes a value so that it cannot change the structure of the surrounding text. */
const escapes: Record<EscapeMode, (value: string) => string> = {
  text: (value) => value.replace(/\s+/g, (gap) => (gap.includes('\n') ? ', ' : gap)),
  html: (value) => escapeHtml(value).replaceAll('\n', '<br>'),
  json: (value) => JSON.stringify(value).slice(1, -1),
  url: (value) => encodeURIComponent(value),
}

/** The maximum length of a filled-in subject and content, in characters. */
export const maxFilledLength = { subject: 998, content: 1_000_000 }

/**
 * Returns the text with its placeholders filled in, and the unknown placeholders. Returns null as
 * soon as the text exceeds `most` characters, because repeated long values could exhaust the
 * memory.
 */
export function fillIn(
  template: string,
  values: Placeholders,
  into: EscapeMode,
  most: number,
): { filled: string; unknown: string[] } | null {
  const unknown = new Set<string>()
  const parts: string[] = []
  let length = 0
  let end = 0
  const add = (part: string): boolean => {
    parts.push(part)
    length += part.length
    return length <= most
  }
  for (const { 0: whole, 1: name = '', index } of template.matchAll(pattern)) {
    const value = values.get(name)
    if (value === undefined && !filledByCampaigns.has(name)) unknown.add(name)
    if (!add(template.slice(end, index)) || !add(value === undefined ? whole : escapes[into](value))) return null
    end = index + whole.length
  }
  return add(template.slice(end)) ? { filled: parts.join(''), unknown: [...unknown] } : null
}
