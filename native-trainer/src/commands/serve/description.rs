//! What programs may ask of a gallery, as OpenAPI describes it.

use serde_json::{Value, json};

/// The page of a server without the page of akin.
pub const PAGE: &str = include_str!("api.html");

/// The description.
pub fn description() -> Value {
    let text = || json!({ "type": "string" });
    let number = |least: u32, most: u32| json!({ "type": "integer", "minimum": least, "maximum": most });
    let texts = || json!({ "type": "array", "items": text() });
    let row = || json!({ "type": "array", "items": { "type": "number" } });
    let parameter = |name: &str, schema: Value, about: &str| json!({ "name": name, "in": "query", "schema": schema, "description": about });
    let filters = || {
        vec![
            parameter(
                "within",
                texts(),
                "Only items of these classes: a name, or a path such as Birds/Owls.",
            ),
            parameter("not", texts(), "No items of these classes."),
        ]
    };
    let item_number =
        json!({ "name": "item", "in": "path", "required": true, "schema": { "type": "integer" } });
    let item = json!({
        "type": "object",
        "properties": {
            "item": { "type": "integer", "description": "Its number in the gallery, from 0." },
            "labels": { "type": "array", "items": text(), "description": "Its classes, coarse to fine, as far as they are known." },
            "thumbnail": { "type": "string", "description": "The address of its thumbnail." },
            "path": { "type": "string", "description": "Its file, if the server shows paths." },
            "score": { "type": "number", "description": "Its similarity to the query, in a search." },
            "sample": { "type": "integer", "description": "Its place among the pictures that the page holds, in a detailed search." },
        },
    });
    let answers = |about: &str| {
        let error = |about: &str| json!({ "description": about, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } });
        json!({
            "200": { "description": about, "content": { "application/json": { "schema": { "type": "object" } } } },
            "400": error("The request is wrong."), "404": error("There is no such item."),
            "503": error("Too many requests wait."),
        })
    };
    let mut search = vec![
        parameter("count", number(1, 1000), "How many items to find; 10 if it is not given."),
        parameter("group_by", text(), "Only the best item of each class of this level."),
        parameter(
            "promise",
            json!({ "type": "number", "minimum": 50, "maximum": 99.9 }),
            "The answer says a class as sure only if this share of such answers is right, in percent.",
        ),
    ];
    search.extend(filters());
    let mut items = vec![
        parameter("first", json!({ "type": "integer", "minimum": 0 }), "How many items to pass over."),
        parameter("count", number(1, 1000), "How many items to list; 100 if it is not given."),
    ];
    items.extend(filters());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "akin",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Search in a gallery of pictures that akin has indexed. Scores are exact.",
        },
        "paths": {
            "/gallery": { "get": { "summary": "What the gallery is", "responses": answers("Its size, levels and encoder.") } },
            "/classes": { "get": { "summary": "The classes of all levels", "responses": answers("Their paths, with the number of their items.") } },
            "/items": { "get": { "summary": "The items, page by page", "parameters": items, "responses": answers("The items.") } },
            "/items/{item}": { "get": { "summary": "An item", "parameters": [item_number], "responses": answers("The item.") } },
            "/items/{item}/thumbnail": { "get": {
                "summary": "A small picture of an item",
                "parameters": [
                    item_number,
                    parameter("side", number(16, 1024), "The pixels of the longer side; 192 if it is not given."),
                    parameter("square", json!({ "type": "boolean" }), "Only the central square of the picture, so many pixels wide."),
                ],
                "responses": {
                    "200": { "description": "A JPEG.", "content": { "image/jpeg": {} } },
                    "404": { "description": "The file is gone or has changed." },
                },
            } },
            "/search": { "post": {
                "summary": "The items that are nearest to a picture, to embeddings or to an item",
                "parameters": search,
                "description": "The options stand in the address beside a picture, and in the body of JSON.",
                "requestBody": { "required": true, "content": {
                    "image/*": { "schema": { "type": "string", "format": "binary" } },
                    "application/json": { "schema": {
                        "type": "object",
                        "additionalProperties": false,
                        "properties": {
                            "embedding": row(), "embeddings": { "type": "array", "items": row(), "maxItems": 256 },
                            "item": { "type": "integer", "minimum": 0 },
                            "version": { "type": "string", "description": "That of the item, from the address of its thumbnail. Another picture is refused." },
                            "sample": { "type": "integer", "minimum": 0, "description": "A picture that the page holds, instead of an item." },
                            "detailed": { "type": "boolean", "description": "Whether to tell votes, answers at all promises, and likeness." },
                            "count": number(1, 1000),
                            "within": texts(), "not": texts(), "group_by": text(), "promise": { "type": "number" },
                        },
                    } },
                } },
                "responses": answers("The items, best first, and what the gallery says of the query."),
            } },
        },
        "components": { "schemas": {
            "Item": item,
            "Error": { "type": "object", "properties": { "error": text(), "hint": text() } },
        } },
    })
}
