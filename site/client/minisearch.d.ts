/** What is used of minisearch, which is installed for the site alone. */
declare module 'minisearch' {
  interface Hit {
    readonly id: number
    readonly score: number
    readonly terms: readonly string[]
  }
  interface Options<Document> {
    readonly fields: readonly string[]
    readonly idField?: string
    readonly searchOptions?: {
      readonly boost?: Readonly<Record<string, number>>
      readonly prefix?: boolean | ((term: string) => boolean)
      readonly fuzzy?: boolean | number | ((term: string) => boolean | number)
      readonly combineWith?: 'AND' | 'OR'
      readonly boostDocument?: (id: number, term: string) => number
    }
    readonly extractField?: (document: Document, field: string) => string
  }
  class MiniSearch<Document> {
    constructor(options: Options<Document>)
    addAll(documents: readonly Document[]): void
    search(query: string): readonly Hit[]
  }

  export { MiniSearch as default }
}
