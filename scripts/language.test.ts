import { describe, expect, it } from 'vitest'
import { findPhrases } from './check-prose.ts'
import { createSpeller, findListProblems, findUnknown } from './check-spelling.ts'
import { commentProse, literalProse, pageProse } from './lib/prose.ts'

describe('the prose of', () => {
  it('a page is without code, addresses and marks, at the same offsets', () => {
    const page = 'See **the** [guide](a/gude.md), `cod e` and https://exampel.com/x.\n\n```ts\nlett x\n```\n<!-- kee -->Done\n'
    const { text } = pageProse('a.md', page)
    expect(text.replace(/[¤\s]+/g, ' ').trim()).toBe('See the [guide , and Done')
    expect([text.length, text.indexOf('Done')]).toEqual([page.length, page.indexOf('Done')])
  })

  it('a comment is without its marks, tags and examples', () => {
    const source =
      'const a = 1\n/**\n * Says it\n * well.\n * @default vrong\n * @example\n * wat(1)\n */\nexport const b = 2 // no\n'
    const start = source.indexOf('/**')
    const { text } = commentProse('a.ts', source, [{ start, end: source.indexOf('*/') + 2 }])
    expect(text.replace(/[¤\s]+/g, ' ').trim()).toBe('Says it well. vrong')
    expect(text.split('\n').findIndex(line => line.includes('well'))).toBe(3)
  })

  it('a source is its sentences, without names, queries and what is put into them', () => {
    const source = [
      "fail('The store is gone', { kind: 'store-gone' })",
      "sql('select one from the table')",
      `log(\`It took \${await measured(\`deep \${inner}\`)} ms at most\`)`,
      '// a comment of some words',
    ].join('\n')
    expect(
      literalProse('a.ts', source)
        .text.replace(/[¤\s]+/g, ' ')
        .trim(),
    ).toBe('The store is gone It took ms at most')
  })
})

describe('check-spelling', () => {
  const speller = createSpeller(['frobnicate'])
  const unknown = (text: string) => findUnknown(pageProse('a.md', text), speller).map(({ word }) => word)

  it('knows British words and listed ones, also behind an apostrophe and around a hyphen', () => {
    expect(unknown("The colour's behaviour isn't re-organised; they frobnicate (well-known) “words”.")).toEqual([])
    expect(unknown('A color, a behavior, recieve-only and serialize.')).toEqual(['color', 'behavior', 'recieve', 'serialize'])
  })

  it('leaves names of code, paths, abbreviations and numbers', () => {
    expect(unknown('`xyzzy` createFoo ABCD a/xyzzy.ts --xyzzy xyzzy_a 5xyz @xyzzy JSONs')).toEqual([])
  })

  it('names the line', () => {
    expect(findUnknown(pageProse('a.md', 'Fine\n\nwrod\n'), speller)).toEqual([{ word: 'wrod', at: 'a.md:3' }])
  })

  it('keeps its list in order, without words of the dictionary', () => {
    expect(findListProblems(['frobnicate', 'xyzzy'])).toEqual([])
    expect(findListProblems(['xyzzy', 'frobnicate', 'word'])).toEqual([
      expect.stringContaining('"frobnicate" is not in order after "xyzzy"'),
      expect.stringContaining('"word" is in the dictionary'),
    ])
  })
})

describe('check-prose', () => {
  const found = (text: string) => findPhrases(pageProse('a.md', text)).map(line => /"([^"]*)"/.exec(line)?.[1])

  it('finds listed phrases in any case and across lines, with what to write', () => {
    expect(findPhrases(pageProse('a.md', 'It is gone for\ngood.\n'))).toEqual(['a.md:1: "for good"; write permanently'])
    expect(found('Whoever is told lets go of it.')).toEqual(['Whoever', 'told', 'lets go of'])
    expect(found('That is no variable, and these are no files.')).toEqual(['is no', 'are no'])
    expect(found('It has a file of its own, and goes on.')).toEqual(['of its own', 'goes on'])
  })

  it('leaves code and what only looks alike', () => {
    expect(
      found(
        '`for good` There is no file. It is no longer there. A tool of its own server. Tell them apart: they are told apart.',
      ),
    ).toEqual([])
  })

  it('finds clauses that are a subject, but not questions', () => {
    expect(found('See there. What is stored there is lost. What is it?')).toEqual(['What is stored there is'])
    expect(found('It fails. Who calls too often is refused. Who calls?')).toEqual(['Who calls'])
  })
})
