// The HTML and CSS of a form, for its own page and for other sites. The form also works without
// JavaScript: the name of each input tells the server where the value belongs
// (contract/input/form-fields.ts).
import { escapeHtml as text } from '../../kernel/values/format.ts'
import { countriesOf } from '../../texts/countries.ts'
import type { Texts } from '../../texts/texts.ts'
import { inputText, localTime, partOf, typedNumber } from './initial-values.ts'
import type { PublicField, PublicForm } from './public-form.ts'

type Attributes = Record<string, string | boolean | null | undefined>

/**
 * Returns the HTML attributes of an element as text. Attributes that are false, null or undefined
 * are omitted.
 */
const attributes = (all: Attributes): string =>
  Object.entries(all)
    .filter(([, value]) => value !== null && value !== undefined && value !== false)
    .map(([name, value]) => (value === true ? ` ${name}` : ` ${name}="${text(String(value))}"`))
    .join('')

/**
 * Returns the HTML of the form. The URL in `action` is relative, so that the form also works behind
 * a proxy.
 */
export function formMarkup(form: PublicForm, zone: string): string {
  const fields = form.fields.filter(({ isShown }) => isShown)
  return `<form class="accord-form" lang="${form.texts.language}" dir="${form.texts.direction}" method="post" action="../${text(form.formId)}">
<h1>${text(form.title)}</h1>
${form.description === null ? '' : `<p class="description">${text(form.description)}</p>\n`}<p class="problem" role="alert" hidden></p>
${fields.map((field) => fieldMarkup(field, zone, form.texts)).join('\n')}
<div class="elsewhere" aria-hidden="true"><label>Website <input name="website" tabindex="-1" autocomplete="off"></label></div>
<button type="submit">${text(form.button)}</button>
</form>`
}

function fieldMarkup(field: PublicField, zone: string, texts: Texts): string {
  const { entity, key, label, isRequired } = field
  const id = `accord-${entity}-${key}`
  const mark = isRequired ? ' <span class="required" aria-hidden="true">*</span>' : ''
  const problem = `<p class="problem" id="${id}-problem" hidden></p>`
  const at = ` data-field="${text(`${entity}.${key}`)}"`
  const control = controlOf(field, id, { zone, texts })
  if (field.attribute.type === 'boolean')
    return `<div class="field"${at}><label class="choice">${control} <span>${text(label)}${mark}</span></label>${problem}</div>`
  if (['address', 'multiselect', 'checkbox'].includes(field.attribute.type))
    return `<fieldset class="field"${at}><legend>${text(label)}${mark}</legend>${control}${problem}</fieldset>`
  return `<div class="field"${at}><label for="${id}">${text(label)}${mark}</label>${control}${problem}</div>`
}

const autocomplete: Readonly<Record<string, string>> = {
  'persons.name': 'name',
  'persons.emails': 'email',
  'persons.contact_numbers': 'tel',
  'persons.job_title': 'organization-title',
  'persons.organization_name': 'organization',
}

const addressParts = [
  ['address', 'form.street', 'street-address'],
  ['postcode', 'form.postcode', 'postal-code'],
  ['city', 'form.city', 'address-level2'],
  ['state', 'form.state', 'address-level1'],
  ['country', 'form.country', 'country'],
] as const

interface Surroundings {
  zone: string
  texts: Texts
}

function controlOf(field: PublicField, id: string, { zone, texts }: Surroundings): string {
  const { entity, key, attribute, placeholder, isRequired: required, initial, options } = field
  const name = `${entity}[${key}]`
  const own = autocomplete[`${entity}.${key}`]
  const input = (more: Attributes): string =>
    `<input${attributes({ id, name, value: inputText(initial), placeholder, required, autocomplete: own, ...more })}>`
  const chosen = new Set([initial].flat())
  switch (attribute.type) {
    case 'textarea':
      return `<textarea${attributes({ id, name, placeholder, required, rows: '5' })}>\n${text(inputText(initial) ?? '')}</textarea>`
    case 'boolean':
      return input({ type: 'checkbox', value: '1', checked: initial === true, placeholder: null })
    case 'select':
    case 'lookup':
      return `<select${attributes({ id, name, required })}><option value="">${text(placeholder ?? '')}</option>${options
        .map(
          (each) =>
            `<option${attributes({ value: String(each.id), selected: chosen.has(each.id) })}>${text(each.name)}</option>`,
        )
        .join('')}</select>`
    case 'multiselect':
    case 'checkbox':
      return options
        .map(
          (each) =>
            `<label class="choice"><input${attributes({ type: 'checkbox', name: `${name}[]`, value: String(each.id), checked: chosen.has(each.id) })}> <span>${text(each.name)}</span></label>`,
        )
        .join('')
    case 'address':
      return addressControls(field, id, texts)
    case 'email':
    case 'phone': {
      const type = attribute.type === 'email' ? 'email' : 'tel'
      return input({ type, name: `${name}[0][value]`, value: partOf([initial].flat()[0], 'value') })
    }
    case 'date':
      return input({ type: 'date' })
    case 'datetime':
      return input({ type: 'datetime-local', value: localTime(initial, zone) })
    case 'number':
    case 'price':
      return input({ type: 'text', inputmode: 'decimal', value: typedNumber(initial, texts.locale) })
    case 'url':
      return input({ type: 'url' })
    default:
      return input(textKinds[attribute.validation ?? ''] ?? { type: 'text' })
  }
}

function addressControls({ entity, key, initial, isRequired }: PublicField, id: string, texts: Texts): string {
  return addressParts
    .map(([part, label, complete]) => {
      const value = partOf(initial, part)
      const all = {
        id: `${id}-${part}`,
        name: `${entity}[${key}][${part}]`,
        autocomplete: complete,
        required: isRequired && part !== 'state',
      }
      const control =
        part === 'country'
          ? `<select${attributes(all)}><option value=""></option>${countryOptions(value, texts)}</select>`
          : `<input${attributes({ ...all, value })}>`
      return `<label class="part" for="${all.id}">${text(texts.say(label))}</label>${control}`
    })
    .join('')
}

const countryOptions = (chosen: string | undefined, texts: Texts): string =>
  countriesOf(texts)
    .map(([code, name]) => `<option${attributes({ value: code, selected: code === chosen })}>${text(name)}</option>`)
    .join('')

const textKinds: Readonly<Record<string, Attributes>> = {
  url: { type: 'url' },
  email: { type: 'email' },
  numeric: { type: 'text', inputmode: 'numeric' },
  decimal: { type: 'text', inputmode: 'decimal' },
}

/** Returns the text color, black or white, that is readable on the given background color. */
function readableOn(color: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16))
  return red * 0.299 + green * 0.587 + blue * 0.114 > 160 ? '#111111' : '#ffffff'
}

/**
 * Returns the CSS of the form. Colors need no escaping, because the contract allows only `#RRGGBB`.
 */
export function formStyle({ colors }: PublicForm): string {
  const card = colors.form_background_color ?? '#ffffff'
  const isDark = readableOn(card) === '#ffffff'
  const ink = isDark ? '#f5f7fa' : '#1d2733'
  const problem = isDark ? '#ffb4a3' : '#b42318'
  const button = colors.form_submit_button_color ?? '#0b6fa8'
  return `.accord-form{box-sizing:border-box;color-scheme:${isDark ? 'dark' : 'light'};max-width:34rem;margin:0 auto;padding:2rem;border-radius:.75rem;background:${card};color:${ink};font:16px/1.5 system-ui,sans-serif;text-align:start;box-shadow:0 1px 2px #0002,0 8px 24px #0000001a;position:relative}
.accord-form *{box-sizing:border-box}
.accord-form h1{margin:0 0 .5rem;font-size:1.5rem;line-height:1.25;color:${colors.form_title_color ?? 'inherit'};overflow-wrap:anywhere}
.accord-form .description{margin:0 0 1rem;white-space:pre-line;overflow-wrap:anywhere}
.accord-form .field{margin:1rem 0 0;padding:0;border:0;min-width:0}
.accord-form label,.accord-form legend{display:block;padding:0;margin:0 0 .25rem;font-weight:600;font-size:.9375rem;color:${colors.attribute_label_color ?? 'inherit'}}
.accord-form .part{font-weight:400;font-size:.875rem;margin-top:.5rem}
.accord-form .choice{display:flex;gap:.5rem;align-items:baseline;font-weight:400}
.accord-form .required{color:${problem}}
.accord-form ::placeholder{color:currentColor;opacity:.6}
.accord-form input:not([type=checkbox]),.accord-form select,.accord-form textarea{display:block;width:100%;padding:.55rem .7rem;font:inherit;color:inherit;background:${isDark ? '#0003' : '#ffffff'};border:1px solid #8793a1;border-radius:.4rem}
.accord-form option{color:#1d2733;background:#ffffff}
.accord-form :is(input,select,textarea,button):focus-visible{outline:3px solid ${button}66;outline-offset:1px}
.accord-form [aria-invalid=true]{border-color:${problem}!important}
.accord-form .problem{margin:.3rem 0 0;font-size:.9375rem;color:${problem}}
.accord-form .elsewhere{position:absolute;inset-inline-start:-9999px;width:1px;height:1px;overflow:hidden}
.accord-form button{margin:1.5rem 0 0;padding:.65rem 1.6rem;font:inherit;font-weight:600;color:${readableOn(button)};background:${button};border:0;border-radius:.4rem;cursor:pointer}
.accord-form button[disabled]{opacity:.6;cursor:progress}
.accord-form [hidden]{display:none}
.accord-form .done{margin:0;white-space:pre-line;overflow-wrap:anywhere}`
}
