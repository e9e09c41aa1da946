/** The variables of a URI template as types, so that a handler's first argument is known from the text of the template. */

type Operator = '+' | '#' | '.' | '/' | ';' | '?' | '&'

/** What stands between braces. */
type Expression<T extends string> = T extends `${string}{${infer Inside}}${infer Rest}` ? Inside | Expression<Rest> : never

type Bare<E extends string> = E extends `${Operator}${infer Specs}` ? Specs : E
type Spec<List extends string> = List extends `${infer Head},${infer Tail}` ? Head | Spec<Tail> : List
type FirstSpec<List extends string> = List extends `${infer Head},${string}` ? Head : List

/** Only `{a}` and `{+a}` must be there; of several variables in one expression the later ones may be missing. */
type Certain<E extends string> = E extends `${Exclude<Operator, '+'>}${string}` ? never : FirstSpec<Bare<E>>

type NameOf<S extends string> = S extends `${infer Name}*` ? Name : S extends `${infer Name}:${string}` ? Name : S
type ValueOf<S extends string> = S extends `${string}*` ? readonly string[] : string

/** The values that a match gives. Of a text that is not known at compile time, any. */
export type TemplateVariables<T extends string> = string extends T
  ? Readonly<Record<string, string | readonly string[]>>
  : { readonly [S in Certain<Expression<T>> as NameOf<S>]: ValueOf<S> } & {
      readonly [S in Spec<Bare<Expression<T>>> as NameOf<S>]?: ValueOf<S>
    }

export type VariableName<T extends string> = string extends T ? string : NameOf<Spec<Bare<Expression<T>>>>
