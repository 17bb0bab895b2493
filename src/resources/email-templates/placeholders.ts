// Fills in the placeholders of templates. `{%leads.title%}` becomes the readable text of a field of
// the record, or of its person, user or organization. `{%leads.title|your request%}` has a fallback
// for an empty field. Webhooks may also send the value itself, by `{%leads.lead_value|raw%}`. An
// unknown placeholder is filled in like an empty field, and reported: recipients never see it.
import { escapeHtml } from '../../kernel/values/format.ts'

export type Placeholders = ReadonlyMap<string, string>
export type EscapeMode = 'text' | 'html' | 'json' | 'url'

const pattern = /\{%\s*([a-z_]+(?:\.[a-z0-9_]+)?)\s*(?:\|([^%]*))?%\}/g
/** Matches the end of the name of a placeholder that stands for the value as JSON. */
export const rawSuffix = /\s{0,9}\|\s{0,9}raw$/
/** Returns the name under which the values have the JSON of a field. */
export const rawName = (name: string): string => `${name}|raw`
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
  for (const { 0: whole, 1: field = '', 2: more = '', index } of template.matchAll(pattern)) {
    const fallback = more.trim()
    const form = fallback === 'raw' || fallback === 'json' ? fallback : undefined
    const name = form === undefined ? field : rawName(field)
    const value = values.get(name)
    const isLater = value === undefined && filledByCampaigns.has(name)
    if (value === undefined && !isLater) unknown.add(name)
    // The fallback is part of the template, so it is not escaped.
    const text = isLater ? whole : textOf(value ?? (form && 'null'), { form, into }) || (form ? '' : fallback)
    if (!add(template.slice(end, index)) || !add(text)) return null
    end = index + whole.length
  }
  return add(template.slice(end)) ? { filled: parts.join(''), unknown: [...unknown] } : null
}

interface Place {
  form: 'raw' | 'json' | undefined
  into: EscapeMode
}

const textOf = (value: string | undefined, { form, into }: Place): string =>
  value === undefined || form === 'json' ? (value ?? '') : escapes[into](form ? textOfJson(value) : value)

/** Returns a value for a place where a text is: texts without quotes, and null as an empty text. */
function textOfJson(json: string): string {
  const value: unknown = JSON.parse(json)
  return typeof value === 'string' ? value : value === null ? '' : json
}
