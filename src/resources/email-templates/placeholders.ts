// Placeholders in templates (DOMAIN 18.4): `{%leads.title%}` stands for what people read of a field of the record at hand, or of its
// person, user or organization. What means nothing stays as it is and is reported.
import { escapeHtml } from '../../kernel/values/format.ts'

export type Placeholders = ReadonlyMap<string, string>
export type Into = 'text' | 'html' | 'json' | 'url'

const pattern = /\{%\s*([a-z_]+(?:\.[a-z0-9_]+)?)\s*%\}/g
/** Filled in when a campaign is sent, by the campaign. */
const later = new Set(['unsubscribe_url'])

/** A value as it may stand in the text around it, so that it stays a value. */
const escapes: Record<Into, (value: string) => string> = {
  text: (value) => value.replace(/\s+/g, (gap) => (gap.includes('\n') ? ', ' : gap)),
  html: (value) => escapeHtml(value).replaceAll('\n', '<br>'),
  json: (value) => JSON.stringify(value).slice(1, -1),
  url: (value) => encodeURIComponent(value),
}

/** The most characters there can be of a subject and of a content once they are filled in. */
export const longest = { subject: 998, content: 1_000_000 }

/**
 * The template with its placeholders filled in, and the names of those that mean nothing, each once. Null when it would have
 * more than `most` characters: a long value can stand in many places, so it is told before all of them are filled.
 */
export function fillIn(
  template: string,
  values: Placeholders,
  into: Into,
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
    if (value === undefined && !later.has(name)) unknown.add(name)
    if (!add(template.slice(end, index)) || !add(value === undefined ? whole : escapes[into](value))) return null
    end = index + whole.length
  }
  return add(template.slice(end)) ? { filled: parts.join(''), unknown: [...unknown] } : null
}
