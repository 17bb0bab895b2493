// Returns a basic mail with changes for the test.
import { Readable } from 'node:stream'
import type { OutboundAttachment, OutboundMessage } from '../../src/mail/message.ts'

export const outbound = (changes: Partial<OutboundMessage> = {}): OutboundMessage => ({
  messageId: '0197a3f2-1111-7000-8000-000000000001@crm.example.com',
  date: new Date('2026-03-01T09:30:00Z'),
  from: { address: 'no-reply@crm.example.com', name: 'Accord CRM' },
  to: ['ada@example.com'],
  cc: [],
  bcc: [],
  subject: 'Your offer',
  html: '<p>Hello</p>',
  text: 'Hello',
  references: [],
  attachments: [],
  ...changes,
})

export const attached = (changes: Partial<OutboundAttachment> & { bytes?: Buffer } = {}): OutboundAttachment => ({
  name: 'offer.txt',
  contentType: 'text/plain',
  contentId: null,
  content: () => Readable.from([changes.bytes ?? Buffer.from('42')]),
  ...changes,
})

/** Joins lines with CRLF. */
export const lines = (...text: string[]): Buffer => Buffer.from(text.join('\r\n'))
