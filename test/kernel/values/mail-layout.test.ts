// The layout of mails of the server: one document, safe texts, both parts with the same words.
import { describe, expect, it } from 'vitest'
import { mailBodies } from '../../../src/kernel/values/mail-layout.ts'

const reader = { language: 'de', direction: 'ltr' as const }

describe('mailBodies', () => {
  it('is a document of the language, without anything that is loaded', () => {
    const { html } = mailBodies(['Hallo'], reader)
    expect(html).toMatch(/^<!doctype html>\n<html lang="de" dir="ltr">/)
    expect(html).not.toMatch(/<(img|link|script|style|iframe)|url\(|src=/)
    expect(mailBodies(['سلام'], { language: 'ar', direction: 'rtl' }).html).toContain('<html lang="ar" dir="rtl">')
  })

  it('has the same words in both parts, escaped in HTML', () => {
    const words = ['<script>alert("1")</script>', 'Ada & Bob\r\nRoom 1', '田中 太郎 🎉 שלום', "it's"]
    const { html, text } = mailBodies(words, reader)
    expect(text).toBe(`${words.join('\n\n')}\n`)
    expect(html).not.toContain('<script')
    expect(html).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;')
    expect(html).toContain('Ada &amp; Bob<br>\nRoom 1')
    expect(html).toContain('田中 太郎 🎉 שלום')
  })

  it('makes a link of a paragraph that is an address, and of no other', () => {
    const { html } = mailBodies(['https://crm.example/?a="><b>&b', 'see https://crm.example'], reader)
    expect(html.match(/<a /g)).toHaveLength(1)
    expect(html).toContain('href="https://crm.example/?a=&quot;&gt;&lt;b&gt;&amp;b"')
    expect(mailBodies(['javascript:alert(1)'], reader).html).not.toContain('<a ')
  })
})
