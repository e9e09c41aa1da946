import { describe, expect, it } from 'vitest'
import { chooseScopes, scopesIn } from './discovery.ts'

const nothing = { challenged: [], suggested: [], wanted: [], before: [], offline: false }

describe('the scopes that are asked for', () => {
  it.each([
    ['none, where nobody names one', {}, []],
    ['the suggested ones, where nobody names another', { suggested: ['a', 'b'] }, ['a', 'b']],
    ['those of the challenge, not the suggested ones', { suggested: ['a'], challenged: ['c'] }, ['c']],
    ['the wanted ones beside those of the challenge', { suggested: ['a'], challenged: ['c'], wanted: ['w'] }, ['w', 'c']],
    ['those of before, and the new ones', { suggested: ['a'], challenged: ['c'], before: ['b'] }, ['b', 'c']],
    ['those of before, where nothing new is named', { suggested: ['a'], before: ['b'] }, ['b']],
    ['each once', { challenged: ['c'], wanted: ['c'], before: ['c'] }, ['c']],
    ['with offline_access, where that is of use', { challenged: ['c'], offline: true }, ['c', 'offline_access']],
    ['not offline_access alone, which would stand in for the defaults', { offline: true }, []],
  ])('are %s', (_what, facts, expected) => {
    expect(chooseScopes({ ...nothing, ...facts })).toEqual(expected)
  })

  it('are parted by blanks of any number', () => {
    expect([scopesIn(undefined), scopesIn(' a  b '), scopesIn('')]).toEqual([[], ['a', 'b'], []])
  })
})
