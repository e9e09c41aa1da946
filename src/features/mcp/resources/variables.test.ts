import { describe, expectTypeOf, it } from 'vitest'
import type { TemplateVariables, VariableName } from './template.ts'

describe('the variables of a template as types', () => {
  it('are text for simple and reserved expressions', () => {
    expectTypeOf<TemplateVariables<'a://{book}/{+path}'>>().toHaveProperty('book').toEqualTypeOf<string>()
    expectTypeOf<TemplateVariables<'a://{book}/{+path}'>>().toHaveProperty('path').toEqualTypeOf<string>()
  })

  it('may be missing where the expression may be', () => {
    expectTypeOf<TemplateVariables<'a://x{?query,limit}'>['limit']>().toEqualTypeOf<string | undefined>()
    expectTypeOf<TemplateVariables<'a://{x,y}'>['x']>().toEqualTypeOf<string>()
    expectTypeOf<TemplateVariables<'a://{x,y}'>['y']>().toEqualTypeOf<string | undefined>()
  })

  it('are lists when exploded, and lose what is no part of the name', () => {
    expectTypeOf<TemplateVariables<'a://x{/path*}'>['path']>().toEqualTypeOf<readonly string[] | undefined>()
    expectTypeOf<VariableName<'a://{id:3}{/path*}{?a,b}'>>().toEqualTypeOf<'id' | 'path' | 'a' | 'b'>()
  })

  it('are anything for a template that is only known later', () => {
    expectTypeOf<TemplateVariables<string>>().toEqualTypeOf<Readonly<Record<string, string | readonly string[]>>>()
  })
})
