//! The server of a service: a type that holds what implements the trait, and becomes a router.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::method::Method;
use super::model::Service;
use crate::text;

/// The type `XServer<T>` of a service `X`.
pub fn code(service: &Service<'_>) -> TokenStream {
    let (rpc, vis, shared) = (&service.options.rpc, &service.item.vis, &service.shared);
    let (of_trait, server) = (&service.item.ident, service.name("Server"));
    let parameter = service.parameter("T");
    let name = text::name(of_trait);
    let debug_name = server.to_string();
    let doc = format!(
        "The service [`{name}`] for a server: whatever implements the trait, with the methods' \
         routes. Give it to `Server::builder().add_service(…)`."
    );
    let routes = service.methods.iter().map(|method| route(service, method));
    quote! {
        #[doc = #doc]
        #(#shared)*
        #[allow(dead_code)]
        #vis struct #server<#parameter>(::std::sync::Arc<#parameter>);

        #(#shared)*
        #[allow(dead_code)]
        impl<#parameter: #of_trait> #server<#parameter> {
            /// Serves calls by a value that implements the trait.
            #[must_use]
            #vis fn new(service: #parameter) -> Self {
                Self(::std::sync::Arc::new(service))
            }

            /// Serves calls by a value that the program shares with the server.
            #[must_use]
            #vis fn from_arc(service: ::std::sync::Arc<#parameter>) -> Self {
                Self(service)
            }
        }

        #(#shared)*
        impl<#parameter> ::core::clone::Clone for #server<#parameter> {
            fn clone(&self) -> Self {
                Self(::core::clone::Clone::clone(&self.0))
            }
        }

        #(#shared)*
        impl<#parameter> ::core::fmt::Debug for #server<#parameter> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Formatter::write_str(f, #debug_name)
            }
        }

        #(#shared)*
        impl<#parameter: #of_trait> ::core::convert::From<::std::sync::Arc<#parameter>>
            for #server<#parameter>
        {
            fn from(service: ::std::sync::Arc<#parameter>) -> Self {
                Self(service)
            }
        }

        #(#shared)*
        impl<#parameter: #of_trait> ::core::convert::From<#server<#parameter>> for #rpc::Router {
            #[allow(deprecated, unused_qualifications)]
            fn from(service: #server<#parameter>) -> Self {
                let router = #rpc::Router::new();
                #(#routes)*
                router
            }
        }
    }
}

/// A statement that adds a method to a router.
fn route(service: &Service<'_>, method: &Method) -> TokenStream {
    let (rpc, of_trait) = (service.rpc_at(method), &service.item.ident);
    let (cfgs, kind, function) = (method.cfgs(), method.kind(), &method.signature.ident);
    let constant = service.constant(method);
    let body = quote_spanned!(method.place()=> #rpc::Request::into_inner(request));
    let arguments = match &method.arguments[..] {
        [] => quote!(),
        [_] if method.request.wrapped => quote!(, request),
        [_] => quote!(, #body),
        several => {
            let at = (0..several.len()).map(syn::Index::from);
            quote!(, #(arguments.#at),*)
        }
    };
    let taken = (method.arguments.len() > 1).then(|| quote!(let arguments = #body;));
    let inline = method.options.inline.map(|()| quote!(.inline(#constant)));
    let unused = method.arguments.is_empty().then(|| quote!(let _ = request;));
    quote_spanned! {method.place()=>
        #(#cfgs)*
        let router = {
            let service = ::core::clone::Clone::clone(&service.0);
            #rpc::Router::#kind(router, #constant, move |request| {
                let service = ::core::clone::Clone::clone(&service);
                async move {
                    #unused
                    #taken
                    #of_trait::#function(&*service #arguments).await
                }
            })
            #inline
        };
    }
}
