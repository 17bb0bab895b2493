// Forms of phone numbers that people write, as they are stored and searched.
import { describe, expect, it } from 'vitest'
import { numbersIn, phoneDocument, phoneKey, phoneKeys, phoneSearchForms } from '../../db/schema/phone-numbers.ts'

describe('a phone number', () => {
  it('is stored with its country code if it is written with one, and else as its digits', () => {
    for (const [written, key] of [
      ['+49 (0)151 / 234-5678', '491512345678'],
      ['0049 151 2345678', '491512345678'],
      ['+49 0151 2345678', '491512345678'],
      ['+491512345678 ext. 12', '491512345678'],
      ['+44 (0)20 7946 0958', '442079460958'],
      ['+39 06 698 12345', '390669812345'],
      ['0151 2345678', '01512345678'],
      ['(212) 555-0143 x12', '2125550143'],
      ['+٤٩ ١٥١ ٢٣٤٥٦٧٨', '491512345678'],
      ['＋４９１５１２３４５６７８', '491512345678'],
      ['110', '110'],
      ['+49 151', '49151'],
      ['x12', '12'],
    ])
      expect.soft([written, phoneKey(written ?? '')]).toEqual([written, key])
  })

  it('has the keys of its country with and without the country code', () => {
    expect(phoneKeys('0151 2345678', 'DE')).toEqual(['01512345678', '491512345678', '1512345678'])
    expect(phoneKeys('+49 151 2345678', 'DE')).toEqual(['491512345678', '1512345678', '01512345678'])
    expect(phoneKeys('+49 151 2345678', 'FR')).toEqual(['491512345678'])
    expect(phoneKeys('0151 2345678', null)).toEqual(['01512345678'])
    expect(phoneKeys('8 (912) 345-67-89', 'RU')).toContain('79123456789')
  })

  it('is searched by the digits that every form contains', () => {
    for (const form of ['0151 2345678', '+491512345678', '01512345678', '151/2345678', '+49 (0)151 234-5678 ext 7'])
      for (const stored of ['+49 (0)151 / 234-5678', '0151 2345678', '0049 151 2345678'])
        expect
          .soft([form, stored, phoneSearchForms(form, null).some((digits) => phoneKey(stored).includes(digits))])
          .toEqual([form, stored, true])
    expect(phoneSearchForms('151/234', null)).toEqual(['151234'])
    expect(phoneSearchForms('+49 (0)151', null)).toEqual(['49151'])
    expect(phoneDocument('+49 (0)151 / 234-5678')).toEqual(['+49 (0)151 / 234-5678', '491512345678', '1512345678'])
  })

  it('is one of several in a text', () => {
    for (const text of [
      '030 123456, 0171 654321',
      '030 123456 / 0171 654321',
      '+1 212 555 0143; 212-555-0199',
      '030 123456 oder 0171 654321',
    ])
      expect.soft([text, numbersIn(text)?.length]).toEqual([text, 2])
    for (const text of ['030/123 456', '+49 (0)151 / 234-5678', '030 123456, ext. 12', '212-555-0143', '0171-654321/2'])
      expect.soft([text, numbersIn(text)]).toEqual([text, null])
  })
})
